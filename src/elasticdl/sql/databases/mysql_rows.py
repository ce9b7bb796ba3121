"""MySQL's rows as Arrow: texts from the wire, converted column by column to what the server says that they are."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["batch_of", "schema_of", "written"]

_UNSIGNED = 32
_BINARY = 63
"""The character set of bytes that are no text."""
_INTEGERS = {1: 8, 2: 16, 13: 16, 9: 32, 3: 32, 8: 64}
"""TINY, SHORT, YEAR, INT24, LONG and LONGLONG, by bits."""
_DECIMALS, _FLOAT, _DOUBLE, _NULL, _BIT = (0, 246), 4, 5, 6, 16
_DATES, _TIMES, _TIMESTAMPS = (10, 14), (11,), (7, 12)
_TIME = re.compile(r"(-?)(\d+):(\d+):(\d+)(?:\.(\d+))?")


def schema_of(fields: Sequence[Any]) -> pa.Schema:
    """The schema of a result, by its field packets."""
    return pa.schema([pa.field(field.name, _type(field)) for field in fields])


def _type(field: Any) -> pa.DataType:
    code, unsigned = field.type_code, bool(field.flags & _UNSIGNED)
    if code in _INTEGERS:
        return getattr(pa, f"{'u' if unsigned and code != 13 else ''}int{_INTEGERS[code]}")()
    if code in _DECIMALS:
        # The length is that of the text: with a sign, and with a point.
        precision = max(field.length - (not unsigned) - (field.scale > 0), field.scale, 1)
        return (
            pa.decimal128(precision, field.scale)
            if precision <= 38
            else pa.decimal256(precision, field.scale)
        )
    known = {_FLOAT: pa.float32(), _DOUBLE: pa.float64(), _NULL: pa.null(), _BIT: pa.uint64()}
    if code in known:
        return known[code]
    if code in _DATES:
        return pa.date32()
    if code in _TIMESTAMPS:
        return pa.timestamp("us")
    if code in _TIMES:
        return pa.duration("us")  # it may be negative, and longer than a day
    return pa.binary() if field.charsetnr == _BINARY and code != 245 else pa.string()


def batch_of(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Rows of texts as a batch. A date that is none, such as 0000-00-00, is NULL."""
    columns = [
        _convert(values, field.type)
        for values, field in zip(zip(*rows, strict=True), schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _convert(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_null(kind):
        return pa.nulls(len(values))
    if pa.types.is_binary(kind):
        return pa.array([_each(value, _bytes) for value in values], kind)
    if kind == pa.uint64() and any(isinstance(value, bytes) for value in values):  # BIT
        return pa.array(
            [_each(value, lambda bits: int.from_bytes(bits, "big")) for value in values], kind
        )
    if pa.types.is_duration(kind):
        return pa.array([_each(value, _microseconds) for value in values], pa.int64()).cast(kind)
    texts = pa.array([_each(value, _text) for value in values], pa.string())
    if pa.types.is_string(kind):
        return texts
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        texts = pc.if_else(pc.match_substring_regex(texts, "^0000|-00"), None, texts)
    return pc.cast(texts, kind)


def _each(value: Any, convert: Callable[[Any], Any]) -> Any:
    return None if value is None else convert(value)


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _microseconds(text: str) -> int:
    match = _TIME.fullmatch(text)
    assert match is not None, text
    sign, hours, minutes, seconds, fraction = match.groups()
    whole = (int(hours) * 3600 + int(minutes) * 60 + int(seconds)) * 1_000_000
    whole += int((fraction or "0").ljust(6, "0"))
    return -whole if sign else whole


def written(column: pa.Array) -> list[Any]:
    """Values to be bound. MySQL has neither NaN nor infinity: they become NULL."""
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_finite(column), column, None)
    if pa.types.is_temporal(column.type) or pa.types.is_decimal(column.type):
        column = pc.cast(column, pa.string())
    return list(column.to_pylist())
