"""Arrow columns as the cells of SQLFlow's protocol: an Any of a wrapper type, a Timestamp, or Row.Null."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from elasticdl.sql.server_messages import PACKAGE, messages

__all__ = ["encode_rows"]

_PREFIX = "type.googleapis.com/"
_INT64 = range(-(2**63), 2**63)
_MICROSECONDS = 10**6
_FIRST, _LAST = -62_135_596_800, 253_402_300_799
"""The years 1 to 9999, in seconds: what a Timestamp can say."""

Encode = Callable[[Any], Any]


def encode_rows(batch: pa.RecordBatch) -> Iterator[Any]:
    """A `Response` with a `row` for each row of a batch."""
    made = messages()
    columns = [_cells(column) for column in batch.columns]
    for cells in zip(*columns, strict=True):
        yield made.Response(row=made.Row(data=cells))


def _cells(column: Any) -> Sequence[Any]:
    values, encode = _encoder(column)
    null = messages().Any(type_url=f"{_PREFIX}{PACKAGE}.Row.Null")
    return [null if value is None else encode(value) for value in values]


def _encoder(column: Any) -> tuple[Sequence[Any], Encode]:
    """The column's values as Python has them, and what makes a cell of one."""
    types, kind = pa.types, column.type
    if types.is_dictionary(kind):
        return _encoder(column.dictionary_decode())
    if isinstance(column, pa.ExtensionArray):
        return _encoder(column.storage) if types.is_string(kind.storage_type) else _texts(column)
    if types.is_boolean(kind):
        return column.to_pylist(), _wrapper("BoolValue")
    if types.is_integer(kind):
        return column.to_pylist(), _wrapper("UInt64Value" if kind == pa.uint64() else "Int64Value")
    if types.is_float32(kind):
        return column.to_pylist(), _wrapper("FloatValue")
    if types.is_floating(kind):
        return column.to_pylist(), _wrapper("DoubleValue")
    if types.is_decimal(kind):
        return column.to_pylist(), _decimal
    if types.is_timestamp(kind) or types.is_date(kind):
        # Of a time with a zone Arrow keeps the moment: without its zone it is in UTC, as a Timestamp is.
        moments = column.cast(pa.timestamp("us"), safe=False)
        return moments.cast(pa.int64()).to_pylist(), _timestamp
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return column.to_pylist(), _wrapper("BytesValue")
    return _texts(column)


def _texts(column: Any) -> tuple[Sequence[Any], Encode]:
    text = _wrapper("StringValue")
    return column.to_pylist(), lambda value: text(_text(value))


def _text(value: Any) -> str:
    if isinstance(value, (list, dict)):
        return json.dumps(value, default=str, ensure_ascii=False)
    return str(value)


def _wrapper(name: str) -> Encode:
    from google.protobuf import wrappers_pb2

    kind, any_ = getattr(wrappers_pb2, name), messages().Any
    url = f"{_PREFIX}google.protobuf.{name}"
    return lambda value: any_(type_url=url, value=kind(value=value).SerializeToString())


def _decimal(value: Any) -> Any:
    """Whole ones stay exact: databases sum integers to decimals."""
    if (
        value == value.to_integral_value()
        and int(value) in _INT64
        and value.as_tuple().exponent == 0
    ):
        return _wrapper("Int64Value")(int(value))
    return _wrapper("DoubleValue")(float(value))


def _timestamp(microseconds: int) -> Any:
    from google.protobuf import timestamp_pb2

    seconds, rest = divmod(microseconds, _MICROSECONDS)
    if not _FIRST <= seconds <= _LAST:
        return _wrapper("StringValue")(f"{seconds} seconds since 1970")
    moment = timestamp_pb2.Timestamp(seconds=seconds, nanos=rest * 1000)
    return messages().Any(
        type_url=f"{_PREFIX}google.protobuf.Timestamp", value=moment.SerializeToString()
    )
