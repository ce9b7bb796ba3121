"""Parquet: the types of columns, missing values, row groups and damage."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from elasticdl.data.chunks import structure_of
from elasticdl.data.registry import open_source
from elasticdl.data.source import Source
from elasticdl.errors import CorruptData, DataError

from .conftest import read, read_all


def source_of(tmp_path: Path, table: Any, params: Any = None, **options: Any) -> Source:
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, **options)
    return open_source(str(path), params)


def column_of(tmp_path: Path, values: Any, type_: Any = None) -> np.ndarray[Any, Any]:
    source = source_of(tmp_path, pa.table({"x": pa.array(values, type_)}))
    [chunk] = source.read(source.shards[0].name, 0, len(values))
    assert structure_of(chunk) == source.structure
    return chunk["x"]  # type: ignore[index,return-value,call-overload]


DAY = datetime.date(1970, 1, 3)
NOON = datetime.datetime(1970, 1, 1, 12)


@pytest.mark.parametrize(
    ("type_", "values", "dtype", "expected"),
    [
        (pa.int8(), [1, -1], "int8", [1, -1]),
        (pa.uint16(), [1, 2], "uint16", [1, 2]),
        (pa.int64(), [1, 2], "int64", [1, 2]),
        (pa.float32(), [1.5, 2], "float32", [1.5, 2]),
        (pa.float64(), [1.5, 2], "float64", [1.5, 2]),
        (pa.bool_(), [True, False], "bool", [True, False]),
        (pa.string(), ["a", "ü"], "object", [b"a", "ü".encode()]),
        (pa.large_string(), ["a", None], "object", [b"a", b""]),
        (pa.binary(), [b"\0a\0", b""], "object", [b"\0a\0", b""]),
        (pa.binary(2), [b"ab", b"c\0"], "object", [b"ab", b"c\0"]),
        (pa.date32(), [DAY, DAY], "int64", [2, 2]),
        (pa.timestamp("ms"), [NOON, NOON], "int64", [43_200_000] * 2),
        (pa.timestamp("us", "UTC"), [NOON, NOON], "int64", [43_200_000_000] * 2),
        (pa.time32("ms"), [datetime.time(0, 1)] * 2, "int64", [60_000] * 2),
        (pa.decimal128(5, 2), [decimal.Decimal("1.25"), None], "float64", [1.25, np.nan]),
        (pa.dictionary(pa.int8(), pa.string()), ["b", "a"], "object", [b"b", b"a"]),
        (pa.dictionary(pa.int8(), pa.int32()), [7, 5], "int32", [7, 5]),
        (pa.list_(pa.float32(), 2), [[1, 2], [3, 4]], "float32", [[1, 2], [3, 4]]),
        (pa.float32(), [1.5, None], "float32", [1.5, np.nan]),
        (pa.string(), [None, "x"], "object", [b"", b"x"]),
    ],
    ids=str,
)
def test_column_has_the_documented_form(
    type_: Any, values: Any, dtype: str, expected: Any, tmp_path: Path
) -> None:
    column = column_of(tmp_path, values, type_)
    assert column.dtype == dtype
    np.testing.assert_array_equal(column, np.array(expected, dtype=dtype))


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (pa.int64(), [1, None]),
        (pa.bool_(), [True, None]),
        (pa.date32(), [DAY, None]),
        (pa.dictionary(pa.int8(), pa.int32()), [7, None]),
        (pa.list_(pa.float32(), 2), [[1, 2], None]),
        (pa.list_(pa.int32(), 2), [[1, 2], [3, None]]),
    ],
    ids=str,
)
def test_missing_value_without_a_form_is_refused(type_: Any, values: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        column_of(tmp_path, values, type_)
    # An older pyarrow cannot even read a list of fixed size that is missing.
    whole = pa.types.is_fixed_size_list(type_) and None in values
    old = whole and int(pa.__version__.split(".")[0]) <= 25
    where = "after row 0: a list of fixed size" if old else "rows 0 to 1: column 'x'"
    assert f"row group 0, {where}" in str(caught.value) and "missing values" in str(caught.value)


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (pa.list_(pa.int32()), [[1], [1, 2]]),
        (pa.struct([("a", pa.int32())]), [{"a": 1}]),
        (pa.null(), [None]),
    ],
    ids=str,
)
def test_column_of_another_type_is_refused_unless_left_out(
    type_: Any, values: Any, tmp_path: Path
) -> None:
    table = pa.table({"x": pa.array(values, type_), "y": range(len(values))})
    with pytest.raises(DataError, match=r"column 'x' is of type .*columns="):
        source_of(tmp_path, table)
    records = read_all(source_of(tmp_path, table, {"columns": ["y"]}))
    assert records == [{"y": i} for i in range(len(values))]


def test_columns_select_and_order(tmp_path: Path) -> None:
    source = source_of(tmp_path, pa.table({"a": [1], "b": [2], "c": [3]}), {"columns": ["c", "a"]})
    assert list(source.structure) == ["c", "a"]  # type: ignore[arg-type]
    assert source.metadata.column_names == ("c", "a")
    assert read_all(source) == [{"c": 3, "a": 1}]


def test_missing_column_is_named_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no column 'lable'\. Did you mean 'label'"):
        source_of(tmp_path, pa.table({"label": [1]}), {"columns": ["lable"]})


def test_reason_of_the_library_ends_with_one_full_stop(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 no parquet")
    with pytest.raises(CorruptData) as caught:
        open_source(str(tmp_path))
    assert ".." not in str(caught.value).replace(str(tmp_path), "")


def test_row_group_is_a_shard(tmp_path: Path) -> None:
    source = source_of(tmp_path, pa.table({"a": range(25)}), row_group_size=10)
    assert [shard.num_records for shard in source.shards] == [10, 10, 5]
    assert all(shard.sequential for shard in source.shards)
    assert read(source, source.shards[1].name, 2, 5) == [{"a": 12}, {"a": 13}, {"a": 14}]


def test_files_must_agree_on_types(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array([1], pa.int64())}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": pa.array([1.0], pa.float32())}), tmp_path / "2.parquet")
    with pytest.raises(DataError, match=r"'a' is float in .*2\.parquet and int64 in .*1\.parquet"):
        open_source(str(tmp_path))


def test_truncated_file_is_corrupt(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": range(1000)}), path)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(CorruptData, match=r"a\.parquet: its footer cannot be read"):
        open_source(str(path))


def test_damaged_page_is_corrupt(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(
        pa.table({"a": [str(i) for i in range(5000)]}),
        path,
        compression="gzip",
        use_dictionary=False,
    )
    data = bytearray(path.read_bytes())
    data[100:3000] = bytes(2900)
    path.write_bytes(data)
    source = open_source(str(path))
    with pytest.raises(CorruptData, match="row group 0 cannot be read"):
        read_all(source)


def test_file_without_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no records"):
        source_of(tmp_path, pa.table({"a": pa.array([], pa.int64())}))
