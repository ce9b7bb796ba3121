"""What a column's Arrow type means for a model: one of a few families, and its values in plain form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as _compute

__all__ = [
    "CASTABLE",
    "MISSING",
    "Array",
    "family",
    "find",
    "floats",
    "integers",
    "plain",
    "seconds",
    "texts",
    "whole",
]

pc: Any = _compute
Array = Any
"""A pyarrow array: its stubs know little of them."""
MISSING = -(2**63)
"""A NULL among int64."""
CASTABLE = ("integer", "number", "boolean")
"""Families of values that are numbers."""

_HEX = np.frombuffer(b"".join(b"%02x" % i for i in range(256)), np.uint8).reshape(256, 2)
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def family(type_: pa.DataType) -> str | None:
    """integer, number, boolean, time, text, binary, null; None for what a model cannot take.

    >>> family(pa.int16()), family(pa.date32()), family(pa.list_(pa.int8()))
    ('integer', 'time', None)
    """
    if isinstance(type_, pa.BaseExtensionType):
        return "text" if _is_uuid(type_) else family(type_.storage_type)
    if pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_):
        return family(type_.value_type)
    return next((name for name, tests in _FAMILIES.items() if any(t(type_) for t in tests)), None)


def _is_whole(type_: pa.DataType) -> bool:
    """A decimal without decimals: what databases sum integers to."""
    return bool(pa.types.is_decimal(type_) and getattr(type_, "scale", 1) <= 0)


_FAMILIES: dict[str, Sequence[Any]] = {
    "integer": (pa.types.is_integer, _is_whole),
    "number": (
        pa.types.is_floating,
        pa.types.is_decimal,
        pa.types.is_duration,
        pa.types.is_time,
    ),
    "boolean": (pa.types.is_boolean,),
    "time": (pa.types.is_date, pa.types.is_timestamp),
    "text": (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
    "binary": (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_fixed_size_binary,
        pa.types.is_binary_view,
    ),
    "null": (pa.types.is_null,),
}


def find(name: str, names: Iterable[str]) -> str | None:
    """The column that is meant: SQL does not look at capital letters, unless two differ in nothing else."""
    known = list(names)
    if name in known:
        return name
    alike = [one for one in known if one.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None


def plain(array: Array) -> Array:
    """The values without dictionaries, views and extension types."""
    type_ = array.type
    if isinstance(type_, pa.BaseExtensionType):
        return _uuid_texts(array) if _is_uuid(type_) else plain(array.storage)
    if pa.types.is_dictionary(type_):
        return plain(array.dictionary_decode())
    if pa.types.is_run_end_encoded(type_):
        return plain(pc.run_end_decode(array))
    if pa.types.is_string_view(type_):
        return array.cast(pa.large_string())
    if pa.types.is_binary_view(type_):
        return array.cast(pa.large_binary())
    return array


def floats(array: Array) -> np.ndarray:
    """Numbers and booleans as float64, NULL as NaN; spans of time in seconds."""
    type_ = array.type
    if pa.types.is_duration(type_) or pa.types.is_time(type_):
        scale = _PER_SECOND[type_.unit]
        width = pa.int32() if type_.bit_width == 32 else pa.int64()
        values = array.view(width).cast(pa.float64())
        return np.asarray(values.to_numpy(zero_copy_only=False)) / scale
    return np.asarray(array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))


def integers(array: Array) -> np.ndarray:
    """Whole numbers and booleans as int64, NULL as MISSING; raises `pa.ArrowInvalid` for others."""
    whole = array.cast(pa.int64())
    return np.asarray(pc.fill_null(whole, MISSING).to_numpy(zero_copy_only=False))


def whole(array: Array) -> Array:
    """Whole numbers as int64 where all of them are such, else as they are."""
    if not pa.types.is_decimal(array.type):
        return array
    try:
        return array.cast(pa.int64())
    except pa.ArrowInvalid:
        return array


def seconds(array: Array) -> np.ndarray:
    """Dates and timestamps as int64 seconds since 1970, NULL as MISSING."""
    type_ = array.type
    if pa.types.is_date32(type_):
        values = integers(array.view(pa.int32()))
        return np.where(values == MISSING, MISSING, values * 86400)
    scale = 1000 if pa.types.is_date64(type_) else _PER_SECOND[type_.unit]
    values = integers(array.view(pa.int64()))
    return np.where(values == MISSING, MISSING, values // scale)


def texts(array: Array) -> np.ndarray:
    """Strings and bytes as an object array of bytes, NULL as b""."""
    if pa.types.is_dictionary(array.type) and family(array.type.value_type) in ("text", "binary"):
        values = texts(array.dictionary)
        indices = pc.fill_null(array.indices.cast(pa.int64()), len(values))
        # One object for each value of the dictionary, however many rows have it.
        with_null = np.append(values, b"")
        return np.asarray(with_null[indices.to_numpy(zero_copy_only=False)])
    as_bytes = plain(array).cast(pa.large_binary())
    return np.asarray(pc.fill_null(as_bytes, b"").to_numpy(zero_copy_only=False), dtype=object)


def _is_uuid(type_: pa.DataType) -> bool:
    return getattr(type_, "extension_name", "") == "arrow.uuid"


def _uuid_texts(array: Array) -> Array:
    """`123e4567-e89b-...` of 16 bytes each."""
    storage = array.storage
    filled = pc.fill_null(storage, bytes(16)).cast(pa.binary()).to_numpy(zero_copy_only=False)
    raw = np.frombuffer(b"".join(filled), np.uint8).reshape(-1, 16)
    hexed = _HEX[raw].reshape(-1, 32)
    dash = np.full((len(raw), 1), ord("-"), np.uint8)
    parts = np.split(hexed, [8, 12, 16, 20], axis=1)
    joined = [parts[0], *(piece for part in parts[1:] for piece in (dash, part))]
    whole = np.ascontiguousarray(np.concatenate(joined, axis=1)).view("S36").reshape(-1)
    made = pa.array(whole.astype(object), pa.binary()).cast(pa.string())
    return pc.if_else(storage.is_valid(), made, pa.scalar(None, pa.string()))
