"""CSV: headers, quoting, odd line ends, and rows that do not fit."""

from __future__ import annotations

import csv
import gzip
import io
import random
from pathlib import Path
from typing import Any

import pytest

from elasticdl.data.readers import csv_scan
from elasticdl.data.registry import open_source
from elasticdl.errors import CorruptData, DataError, InvalidValue

from .conftest import csv_bytes, random_rows, read, read_all


def rows_of(tmp_path: Path, data: bytes, name: str = "a.csv", **params: Any) -> list[list[bytes]]:
    path = tmp_path / name
    path.write_bytes(data)
    return read_all(open_source(str(path), params))


def test_columns_come_in_the_order_asked_for_whatever_the_file_has(tmp_path: Path) -> None:
    data = b"a,b,c\n1,2,3\n4,5,6\n"
    assert rows_of(tmp_path, data, columns=["c", "a"]) == [[b"3", b"1"], [b"6", b"4"]]
    assert rows_of(tmp_path, data, columns=["b"]) == [[b"2"], [b"5"]]
    assert rows_of(tmp_path, data) == [[b"1", b"2", b"3"], [b"4", b"5", b"6"]]


def test_metadata_and_structure_name_the_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"a,b\n1,2\n")
    source = open_source(str(tmp_path / "a.csv"), {"columns": ["b", "a"]})
    assert source.metadata.column_names == ("b", "a")
    assert source.structure.shape == (2,)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"a,b\n1,2", [[b"1", b"2"]]),
        (b"a,b\r\n1,2\r\n", [[b"1", b"2"]]),
        (b"a,b\r1,2\r3,4", [[b"1", b"2"], [b"3", b"4"]]),
        (b"\xef\xbb\xbfa,b\n1,2\n", [[b"1", b"2"]]),
        (b'\xef\xbb\xbf"a\nx",b\n1,2\n', [[b"1", b"2"]]),
        (b"\n\na,b\n\n1,2\n\r\n\n3,4\n\n\n", [[b"1", b"2"], [b"3", b"4"]]),
        (b'a,b\n"x,y","z\nw"\n', [[b"x,y", b"z\nw"]]),
        (b'a,b\n"x\r\ny","""q"""\n', [[b"x\r\ny", b'"q"']]),
        (b'a,b\n5" pipe,6" pipe\n7",8\n', [[b'5" pipe', b'6" pipe'], [b'7"', b"8"]]),
        (b'a,b\n"","\n"\n', [[b"", b"\n"]]),
        (b"a,b\nNA,\nnull,NaN\n", [[b"NA", b""], [b"null", b"NaN"]]),
        (b"a,b\n 1 ,\xe9\xff\n", [[b" 1 ", b"\xe9\xff"]]),
        (b"a\n1\n\n2\n", [[b"1"], [b"2"]]),
    ],
)
def test_odd_text_is_read(data: bytes, expected: list[Any], tmp_path: Path) -> None:
    assert rows_of(tmp_path, data) == expected
    assert rows_of(tmp_path, gzip.compress(data), "a.csv.gz") == expected


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 64, 1 << 20])
def test_rows_are_the_same_wherever_the_scan_is_cut(
    piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_scan, "_READ_BYTES", piece)
    rows = random_rows(60, seed=piece)
    expected = [[field.encode() for field in row] for row in rows]
    assert rows_of(tmp_path, csv_bytes(rows)) == expected


def test_random_text_with_stray_quotes_counts_as_the_parser_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One column, so that the parser refuses nothing: any difference is a row too many or few."""
    rng = random.Random(0)
    for trial in range(200):
        monkeypatch.setattr(csv_scan, "_READ_BYTES", rng.randrange(1, 12))
        body = "".join(rng.choices(['"', '""', "a", " ", "\n", "\r\n"], k=rng.randrange(1, 40)))
        path = tmp_path / f"{trial}.csv"
        path.write_bytes(b"h\n" + body.encode() + b"\nz\n")
        try:
            source = open_source(str(path))
        except DataError as e:
            assert "never closed" in str(e)
            continue
        records = read_all(source)
        assert len(records) == source.shards[0].num_records
        assert records[-1] == [b"z"]
        for i, record in enumerate(records):
            assert read(source, str(path), i, i + 1) == [record]


def test_tsv_and_sep_separate_fields(tmp_path: Path) -> None:
    assert rows_of(tmp_path, b"a\tb\n1,5\t2\n", "a.tsv") == [[b"1,5", b"2"]]
    assert rows_of(tmp_path, gzip.compress(b"a\tb\n1\t2\n"), "b.tsv.gz") == [[b"1", b"2"]]
    assert rows_of(tmp_path, b'a;b\n"1;";2\n', sep=";") == [[b"1;", b"2"]]


def test_files_with_other_orders_of_columns_are_matched_by_name(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_bytes(b"a,b\n1,2\n")
    (tmp_path / "2.csv").write_bytes(b"b,a\n4,3\n")
    assert read_all(open_source(str(tmp_path))) == [[b"1", b"2"], [b"3", b"4"]]


def test_files_with_other_columns_are_refused_unless_columns_are_named(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_bytes(b"a,b\n1,2\n")
    (tmp_path / "2.csv").write_bytes(b"b,a,c\n4,3,5\n")
    with pytest.raises(DataError, match=r"2\.csv has a column 'c' that .*1\.csv has not"):
        open_source(str(tmp_path))
    assert read_all(open_source(str(tmp_path), {"columns": ["a"]})) == [[b"1"], [b"3"]]


def test_missing_column_is_named_with_the_nearest_and_the_header(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no column 'lable'\. Did you mean 'label'\?.*: x, label"):
        rows_of(tmp_path, b"x,label\n1,2\n", columns=["x", "lable"])
    with pytest.raises(DataError, match=r"no column 'z'\. Its columns are: x, label\.$"):
        rows_of(tmp_path, b"x,label\n1,2\n", columns=["z"])


def test_repeated_column_is_refused_when_asked_for(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="2 columns named 'x'"):
        rows_of(tmp_path, b"x,x,y\n1,2,3\n", columns=["x"])
    assert rows_of(tmp_path, b"x,x,y\n1,2,3\n", columns=["y"]) == [[b"3"]]


@pytest.mark.parametrize(("row", "fields"), [("1", 1), ("1,2,3", 3), (" ", 1)])
@pytest.mark.parametrize("place", [0, 1, 700])
def test_row_that_does_not_fit_is_named(row: str, fields: int, place: int, tmp_path: Path) -> None:
    rows = ["7,8"] * 800
    rows[place] = row
    with pytest.raises(
        DataError, match=rf"a\.csv: row {place + 2} .* has {fields} fields, the hea"
    ):
        rows_of(tmp_path, "\n".join(["a,b", *rows]).encode())


def test_unclosed_quote_is_named_with_its_row(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"row 3 .*never closed"):
        rows_of(tmp_path, b'a,b\n1,2\n"3,4\n5,6\n')


def test_endless_row_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_scan, "_MAX_ROW_BYTES", 1 << 20)
    with pytest.raises(DataError, match=r"row 2 .* goes on for more than 1 MiB"):
        rows_of(tmp_path, b'a,b\n"' + b"x,y\n" * (1 << 20))


@pytest.mark.parametrize("data", [b"", b"\n", b"a,b\n", b"a,b"])
def test_file_without_records_is_refused(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"empty|no records"):
        rows_of(tmp_path, data)


def test_text_that_is_not_utf8_is_read_as_it_is(tmp_path: Path) -> None:
    data = "prix,café\n1,thé\n".encode("latin-1")
    assert rows_of(tmp_path, data) == [[b"1", b"th\xe9"]]
    assert rows_of(tmp_path, data, columns=["prix"]) == [[b"1"]]
    with pytest.raises(DataError, match=r"row 3 .* has 3 fields, the header 2: '2,th.,3'"):
        rows_of(tmp_path, data + b"2,th\xe9,3\n")


@pytest.mark.parametrize("columns", [None, ["a", "b"], ["1", "b"]])
def test_first_row_of_numbers_is_no_header(columns: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"first row reads as data.*'1,-2\.5'.*header row"):
        rows_of(tmp_path, b"1,-2.5\n3,4\n", **({"columns": columns} if columns else {}))


def test_names_that_are_numbers_are_found_when_they_are_asked_for(tmp_path: Path) -> None:
    assert rows_of(tmp_path, b"2023,2024\n3,4\n", columns=["2024"]) == [[b"4"]]
    assert rows_of(tmp_path, b"id,2024\n3,4\n") == [[b"3", b"4"]]


def test_header_that_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="header is no text"):
        rows_of(tmp_path, "a,b\n1,2\n".encode("utf-16"))


def test_truncated_gzip_is_corrupt(tmp_path: Path) -> None:
    text = io.StringIO()
    csv.writer(text).writerows([["a"], *([str(i)] for i in range(1000))])
    with pytest.raises(CorruptData, match="cannot decompress"):
        rows_of(tmp_path, gzip.compress(text.getvalue().encode())[:-20], "a.csv.gz")


@pytest.mark.parametrize("columns", ["a", [], [1], ["a", "a"], 3])
def test_wrong_columns_are_refused(columns: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="Invalid columns"):
        rows_of(tmp_path, b"a,b\n1,2\n", columns=columns)


@pytest.mark.parametrize("sep", ["", ",,", '"', "\n", 5, "ü"])
def test_wrong_sep_is_refused(sep: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="Invalid sep"):
        rows_of(tmp_path, b"a,b\n1,2\n", sep=sep)
