"""Showing a place in a text: its line and column, the line, and the place underlined."""

from __future__ import annotations

import unicodedata

__all__ = ["point"]

_TAB = 4
_BEFORE, _WIDTH = 40, 100  # of a long line, in characters


def point(text: str, start: int, end: int) -> str:
    """The place from `start` to `end` as a person looks for it; of several lines the first.

    >>> print(point("SELECT *\\nFROM t TARIN m", 16, 21))
    line 2, column 8:
      FROM t TARIN m
             ^^^^^
    """
    last = len(text.rstrip())
    start = min(max(start, 0), len(text))
    if start >= last:
        start = end = last
    first = text.rfind("\n", 0, start) + 1
    newline = text.find("\n", start)
    stop = len(text) if newline < 0 else newline
    line = text[first:stop].rstrip()
    shown, marks = _underlined(line, start - first, max(min(end, stop) - first, 0))
    goes_on = " ..." if text[stop:end].strip() else ""
    place = f"line {text.count(chr(10), 0, first) + 1}, column {start - first + 1}:"
    return f"{place}\n  {shown}\n  {marks}{goes_on}"


def _underlined(line: str, start: int, end: int) -> tuple[str, str]:
    """The line, or the part of a long one around the place, and the marks to stand below it."""
    if len(line) > _WIDTH:
        begin = max(min(start - _BEFORE, len(line) - _WIDTH), 0)
        stop = begin + _WIDTH
        left, right = "..." if begin else "", "..." if stop < len(line) else ""
        shown, marks = _underlined(line[begin:stop], start - begin, min(end, stop) - begin)
        return f"{left}{shown}{right}", " " * len(left) + marks
    before = _spread(line[:start], 0)
    marked = _spread(line[start:end], _width(before))
    after = _spread(line[end:] if end > start else line[start:], _width(before + marked))
    return before + marked + after, " " * _width(before) + "^" * max(_width(marked), 1)


def _spread(part: str, column: int) -> str:
    """Tabs as spaces, and nothing that could move a terminal's cursor."""
    shown = []
    for character in part:
        if character == "\t":
            character = " " * (_TAB - column % _TAB)
        elif unicodedata.category(character) in ("Cc", "Cs", "Co", "Cn", "Zl", "Zp"):
            character = "\N{REPLACEMENT CHARACTER}"
        shown.append(character)
        column += _width(character)
    return "".join(shown)


def _width(part: str) -> int:
    """How many columns of a terminal it takes."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in part)
    none = sum(unicodedata.category(character) in ("Mn", "Me", "Cf") for character in part)
    return len(part) + wide - none
