"""Places in a text, shown to a person."""

from __future__ import annotations

import pytest

from elasticdl.sql.point import point


def shown(text: str, place: str) -> list[str]:
    start = text.index(place)
    return point(text, start, start + len(place)).splitlines()


def test_a_place_is_underlined() -> None:
    assert shown("SELECT *\nFROM t TARIN m\n", "TARIN") == [
        "line 2, column 8:",
        "  FROM t TARIN m",
        "         ^^^^^",
    ]


def test_tabs_are_shown_as_spaces_and_count_as_one_column() -> None:
    assert shown("\tFROM\tt TARIN", "TARIN") == [
        "line 1, column 9:",
        "      FROM    t TARIN",
        "                ^^^^^",
    ]
    assert shown("a\tb", "\t")[1:] == ["  a   b", "   ^^^"]


def test_wide_characters_are_underlined_as_wide_as_they_are() -> None:
    assert shown("表 = 名前 x", "名前") == ["line 1, column 5:", "  表 = 名前 x", "       ^^^^"]
    assert shown("e\u0301 x", "x")[2] == "    ^"


def test_of_several_lines_the_first_is_shown() -> None:
    assert shown("a\nSELECT 'x\n y' z\n", "'x\n y'") == [
        "line 2, column 8:",
        "  SELECT 'x",
        "         ^^ ...",
    ]


@pytest.mark.parametrize("text", ["SELECT 1", "SELECT 1\n\n", "SELECT 1  \r\n"])
def test_the_end_is_after_the_last_word(text: str) -> None:
    assert point(text, len(text), len(text)).splitlines() == [
        "line 1, column 9:",
        "  SELECT 1",
        "          ^",
    ]


def test_a_place_of_no_length_and_one_outside_of_the_text_are_shown() -> None:
    assert point("ab cd", 3, 3).splitlines()[2] == "     ^"
    assert point("", 5, 9).splitlines() == ["line 1, column 1:", "  ", "  ^"]
    assert point("ab", -3, 1).splitlines()[2] == "  ^"
    assert point("a\nb", 1, 1).splitlines() == ["line 1, column 2:", "  a", "   ^"]


def test_a_long_line_is_shown_around_the_place() -> None:
    text = "SELECT " + "a, " * 1_000_000 + "TARIN" + ", b" * 1_000_000
    place, line, marks = shown(text, "TARIN")
    assert place == "line 1, column 3000008:"
    assert len(line) < 120 and line.startswith("  ...") and line.endswith("...")
    assert line[marks.index("^") : len(marks)] == "TARIN"


def test_a_long_place_is_underlined_to_the_end_of_what_is_shown() -> None:
    _, line, marks = point("x" * 5000, 10, 4000).splitlines()
    assert len(marks) <= len(line) < 120 and marks.endswith("^")


def test_what_could_move_the_cursor_is_not_shown() -> None:
    assert "\x1b" not in point("SELECT '\x1b[2J' TARIN", 14, 19)
    assert shown("a\x1bb TARIN\r\n", "TARIN")[1:] == [
        "  a\N{REPLACEMENT CHARACTER}b TARIN",
        "      ^^^^^",
    ]


def test_a_place_in_a_text_of_many_lines_has_its_number() -> None:
    text = "SELECT 1;\n" * 10_000 + "TARIN"
    assert shown(text, "TARIN")[0] == "line 10001, column 1:"
