"""Arrow to numpy: every type, NULLs, types that changed, columns that are missing."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from elasticdl.errors import DataError
from elasticdl.tabular.arrays import MISSING, check_columns, to_arrays
from elasticdl.tabular.plan import Column, Label

UTC = dt.UTC
DAY = dt.date(2024, 2, 29)
NOON = dt.datetime(1969, 12, 31, 12, 0, 0, 500_000)


def read(values: Any, dtype: str, type_: pa.DataType | None = None, source: str = "") -> Any:
    array = values if isinstance(values, pa.Array) else pa.array(values, type_)
    batch = pa.RecordBatch.from_arrays([array], ["x"])
    return to_arrays(batch, [Column("x", dtype, source)])["x"]


@pytest.mark.parametrize(
    "type_",
    [
        pa.int8(),
        pa.uint64(),
        pa.float16(),
        pa.float32(),
        pa.float64(),
        pa.decimal128(5, 2),
        pa.decimal256(50, 1),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_become_floats_with_nan_for_null(type_: pa.DataType, dtype: str) -> None:
    given = (
        np.float16 if type_ == pa.float16() else (Decimal if pa.types.is_decimal(type_) else int)
    )
    array = read([given(3), None, given(7)], dtype, type_)
    assert array.dtype == dtype
    np.testing.assert_array_equal(array, np.array([3, np.nan, 7], dtype))


def test_booleans_become_numbers() -> None:
    np.testing.assert_array_equal(read([True, None, False], "float32"), [1, np.nan, 0])
    np.testing.assert_array_equal(read([True, None, False], "int64"), [1, MISSING, 0])


def test_whole_numbers_keep_all_their_digits() -> None:
    huge = 2**62 + 1
    assert read([huge, None, -5], "int64").tolist() == [huge, MISSING, -5]
    assert read([2**53 - 1], "float64").tolist() == [2**53 - 1]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_become_seconds_rounded_down(unit: str) -> None:
    expected = -43200  # before 1970, and half a second is cut off downwards
    values = read([NOON, None], "int64", pa.timestamp(unit), f"timestamp[{unit}]")
    assert values.tolist() == [expected, MISSING]


def test_timestamps_with_a_zone_are_utc() -> None:
    zone = dt.timezone(dt.timedelta(hours=2))
    array = pa.array([dt.datetime(2024, 1, 1, 2, tzinfo=zone)], pa.timestamp("us", "Europe/Berlin"))
    moment = dt.datetime(2024, 1, 1, tzinfo=UTC).timestamp()
    assert read(array, "int64", source="timestamp[us]").tolist() == [moment]


@pytest.mark.parametrize("type_", [pa.date32(), pa.date64()], ids=str)
def test_dates_become_seconds(type_: pa.DataType) -> None:
    moment = dt.datetime(2024, 2, 29, tzinfo=UTC).timestamp()
    assert read([DAY, None], "int64", type_, str(type_)).tolist() == [moment, MISSING]


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["ü", None, ""]),
        pa.array(["ü", None, ""], pa.large_string()),
        pa.array(["ü", None, ""], pa.string_view()),
        pa.array(["ü", None, ""]).dictionary_encode(),
        pa.array(["ü".encode(), None, b""]),
        pa.array(["ü".encode(), None, b""], pa.large_binary()),
    ],
    ids=lambda array: str(array.type),
)
def test_text_becomes_bytes_with_nothing_for_null(array: pa.Array) -> None:
    values = read(array, "string")
    assert values.dtype == object
    assert values.tolist() == ["ü".encode(), b"", b""]


def test_uuids_become_their_text() -> None:
    one = uuid.uuid4()
    array = pa.array([one.bytes, None], pa.uuid())
    assert read(array, "string").tolist() == [str(one).encode(), b""]


def test_bytes_of_one_length_stay_as_they_are() -> None:
    assert read([b"ab\0d", None], "string", pa.binary(4)).tolist() == [b"ab\0d", b""]


def test_spans_of_time_become_seconds() -> None:
    values = read([dt.timedelta(minutes=2), None], "float64", pa.duration("ms"))
    np.testing.assert_array_equal(values, [120, np.nan])
    np.testing.assert_array_equal(read([dt.time(1, 0, 1)], "float32", pa.time64("us")), [3601])
    np.testing.assert_array_equal(read([dt.time(1, 0, 1)], "float32", pa.time32("s")), [3601])


def test_a_column_of_nulls_has_the_missing_value_of_its_dtype() -> None:
    assert np.isnan(read([None, None], "float32")).all()
    assert read([None], "int64").tolist() == [MISSING]
    assert read([None], "string").tolist() == [b""]


@pytest.mark.parametrize(
    ("values", "dtype", "source", "expected"),
    [
        ([1, 2], "string", "string", [b"1", b"2"]),
        ([1.0, 2.0], "int64", "int64", [1, 2]),
        ([Decimal("1.0")], "int64", "int64", [1]),
        ([" 1.5", "2"], "float32", "double", [1.5, 2]),
        (["7"], "int64", "int32", [7]),
        (["1970-01-02"], "int64", "date32[day]", [86400]),
        ([DAY], "string", "string", [b"2024-02-29"]),
        ([True], "string", "string", [b"true"]),
    ],
)
def test_values_of_another_type_are_converted_where_nothing_is_lost(
    values: list[Any], dtype: str, source: str, expected: list[Any]
) -> None:
    assert read(values, dtype, source=source).tolist() == expected


@pytest.mark.parametrize(
    ("values", "dtype", "source"),
    [
        (["many"], "float32", "double"),
        ([1.5], "int64", "int64"),
        (["soon"], "int64", "timestamp[us]"),
        ([5], "int64", "date32[day]"),
        ([DAY], "int64", "int64"),
        ([DAY], "float32", "double"),
        ([[1]], "string", "string"),
        ([2**63], "int64", "int64"),
    ],
)
def test_values_that_do_not_convert_are_refused_with_both_types(
    values: list[Any], dtype: str, source: str
) -> None:
    array = pa.array(values, pa.uint64()) if values == [2**63] else pa.array(values)
    with pytest.raises(DataError) as error:
        read(array, dtype, source=source)
    for word in ("'x'", source, str(array.type)):
        assert word in str(error.value)


def test_missing_columns_are_named_with_the_nearest() -> None:
    batch = pa.record_batch({"age": [1], "role": ["a"]})
    with pytest.raises(DataError, match=r"no columns 'agee', 'zip'.*Did you mean 'age'\?"):
        to_arrays(
            batch, [Column("agee", "float32"), Column("role", "string"), Column("zip", "string")]
        )


def test_capital_letters_do_not_matter_unless_two_columns_differ_in_them() -> None:
    batch = pa.record_batch({"Age": [1.0], "x": [1.0], "X": [2.0]})
    arrays = to_arrays(
        batch, [Column("age", "float32"), Column("x", "float32"), Column("X", "float32")]
    )
    assert {name: values.tolist() for name, values in arrays.items()} == {
        "age": [1],
        "x": [1],
        "X": [2],
    }


def test_a_label_is_read_like_a_column() -> None:
    batch = pa.record_batch({"y": pa.array([True, False])})
    assert to_arrays(batch, [Label("y", "classification", "int64")])["y"].tolist() == [1, 0]


def test_a_schema_is_checked_without_rows() -> None:
    schema = pa.schema({"age": pa.int32(), "tags": pa.list_(pa.string()), "id": pa.uuid()})
    check_columns(schema, [Column("age", "string"), Column("id", "string")])
    with pytest.raises(DataError, match="'tags'"):
        check_columns(schema, [Column("tags", "string", "string")])
    with pytest.raises(DataError, match="'ages'"):
        check_columns(schema, [Column("ages", "float32")])


def test_numbers_beyond_a_float32_are_infinite() -> None:
    assert read([1e300], "float32").tolist() == [np.inf]


def test_no_rows_give_empty_arrays() -> None:
    batch = pa.RecordBatch.from_pylist([], schema=pa.schema({"x": pa.string(), "d": pa.date32()}))
    arrays = to_arrays(batch, [Column("x", "string"), Column("d", "int64", "date32[day]")])
    assert [len(array) for array in arrays.values()] == [0, 0]
