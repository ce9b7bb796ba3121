"""Rows as serialized `tf.Example`s, and back: raw values by column; a NULL is left out.

Whole numbers and times are `int64_list`, text is `bytes_list`, other numbers are `float_list`. Its floats have 32 bits:
a column that needs 64 is written as whole numbers where it has such, and else as text in a `bytes_list`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from elasticdl.tabular.arrays import to_arrays
from elasticdl.tabular.plan import Column, FeaturePlan
from elasticdl.tabular.types import MISSING

if TYPE_CHECKING:
    import tensorflow as tf

__all__ = ["parse", "to_examples"]

_BYTES, _FLOATS, _INTEGERS = 1, 2, 3
"""The fields of `Feature`."""
_PIECE = 2
"""The wire type of what has a length."""


def to_examples(batch: pa.RecordBatch, plan: FeaturePlan, *, with_label: bool) -> list[bytes]:
    """A serialized `tf.Example` a row, of the plan's columns and the label.

    The bytes are put together by columns: building 20 features a row by their classes takes ten times as long.
    """
    columns = [*plan.columns, *(plan.label_columns if with_label else ())]
    arrays = to_arrays(batch, [_read_as(column) for column in columns])
    entries = [_WRITERS[_stored(c)](c.name, arrays[c.name]) for c in columns]
    rows = zip(*entries, strict=True) if entries else [()] * batch.num_rows
    return [_field(1, b"".join(row)) for row in rows]


def parse(records: tf.Tensor, columns: Sequence[Column]) -> dict[str, tf.Tensor]:
    """The columns of a batch of serialized examples."""
    import tensorflow as tf

    nothing: dict[str, Any] = {"string": "", "int64": MISSING, "float32": float("nan")}
    spec = {
        c.name: tf.io.FixedLenFeature([], _stored(c), default_value=nothing[_stored(c)])
        for c in columns
    }
    found = tf.io.parse_example(records, spec)
    return {c.name: _restored(found[c.name], c) for c in columns}


def _restored(values: tf.Tensor, column: Column) -> tf.Tensor:
    import tensorflow as tf

    if column.dtype != "float64":
        return values
    if values.dtype == tf.string:
        return tf.strings.to_number(tf.where(values == "", "nan", values), tf.float64)
    nan = tf.constant(float("nan"), tf.float64)
    return tf.where(values == MISSING, nan, tf.cast(values, tf.float64))


def _stored(column: Column) -> str:
    """As which type a column is written."""
    if column.dtype != "float64":
        return column.dtype
    return "int64" if column.source.startswith(("int", "uint")) else "string"


def _read_as(column: Column) -> Column:
    """As text a number of 64 bits is exact: Arrow writes the shortest that reads the same."""
    return replace(column, dtype=_stored(column))


def _floats(name: str, values: np.ndarray) -> list[bytes]:
    return _fixed(
        name, _FLOATS, values.astype("<f4").view(np.uint8).reshape(-1, 4), ~np.isnan(values)
    )


def _integers(name: str, values: np.ndarray) -> list[bytes]:
    """Numbers of seven bits a byte, so those of one length at a time."""
    unsigned = values.view(np.uint64)
    made = np.full(len(values), b"", dtype=object)
    lengths = np.ones(len(values), np.int64)
    for length in range(1, 10):
        lengths += unsigned >= np.uint64(1 << (7 * length))
    for length in np.unique(lengths).tolist():
        chosen = lengths == length
        shifts = np.arange(length, dtype=np.uint64) * np.uint64(7)
        parts = (unsigned[chosen, None] >> shifts) & np.uint64(0x7F)
        raw = parts.astype(np.uint8)
        raw[:, :-1] |= 0x80
        made[chosen] = _fixed(name, _INTEGERS, raw, values[chosen] != MISSING)
    return made.tolist()


def _texts(name: str, values: np.ndarray) -> list[bytes]:
    """What stands before a text depends on its length alone."""
    starts: dict[int, bytes] = {}
    entries = []
    for value in values.tolist():
        length = len(value)
        if length not in starts:
            starts[length] = _entry(name, _BYTES, bytes(length))[:-length] if length else b""
        entries.append(starts[length] + value)
    return entries


def _fixed(name: str, kind: int, values: np.ndarray, there: np.ndarray) -> list[bytes]:
    """Entries that differ in some bytes only, the last ones, which are given."""
    width = values.shape[1]
    start = np.frombuffer(_entry(name, kind, bytes(width))[:-width], np.uint8)
    whole = np.empty((len(values), len(start) + width), np.uint8)
    whole[:, : len(start)] = start
    whole[:, len(start) :] = values
    entries: list[bytes] = whole.view(f"V{whole.shape[1]}").reshape(-1).tolist()
    if there.all():
        return entries
    return [entry if one else b"" for entry, one in zip(entries, there.tolist(), strict=True)]


def _entry(name: str, kind: int, value: bytes) -> bytes:
    """An entry of the map from names to features, as protobuf writes it."""
    feature = _field(kind, _field(1, value))
    return _field(1, _field(1, name.encode()) + _field(2, feature))


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | _PIECE]) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    parts = []
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


_WRITERS: dict[str, Callable[[str, np.ndarray], list[bytes]]] = {
    "float32": _floats,
    "int64": _integers,
    "string": _texts,
}
