"""SQLite's rows as Arrow: its columns may hold anything, so that a type is told by all of their values.

A result of one batch tells at once. A longer one is put into a temporary file, batch by batch in the types that each
batch has, and read again when all values were seen: no value is lost that does not look like those before it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc

from elasticdl.sql.databases.streams import BATCH_ROWS

__all__ = ["read_rows"]

_TIMES = {"date": pa.date32(), "timestamp": pa.timestamp("us")}


def read_rows(
    fetch: Callable[[int], list[tuple[Any, ...]]], names: Sequence[str], declared: Sequence[str]
) -> tuple[pa.Schema, Iterator[pa.RecordBatch], Callable[[], None]]:
    """Rows that `fetch(n)` gives: their schema, the batches, and what closes them.

    Args:
      declared: the columns' types as they were declared, where they were.
    """
    columns = [_Column(text) for text in declared]
    first = fetch(BATCH_ROWS)
    arrays = _take(columns, first)
    if len(first) < BATCH_ROWS:
        schema = _schema(names, columns)
        return schema, iter([_batch(arrays, columns, schema)] if first else []), lambda: None
    file = tempfile.TemporaryFile(prefix="elasticdl-")  # noqa: SIM115 (lives as long as the rows)
    while first:
        _write(file, arrays)
        first = fetch(BATCH_ROWS)
        arrays = _take(columns, first)
    file.seek(0)
    schema = _schema(names, columns)
    return schema, (_batch(arrays, columns, schema) for arrays in _read(file)), file.close


def _take(columns: Sequence[_Column], rows: Sequence[tuple[Any, ...]]) -> list[pa.Array]:
    values: Iterable[Sequence[Any]] = zip(*rows, strict=True) if rows else [()] * len(columns)
    return [column.take(part) for column, part in zip(columns, values, strict=True)]


def _schema(names: Sequence[str], columns: Sequence[_Column]) -> pa.Schema:
    return pa.schema(
        [pa.field(name, column.type()) for name, column in zip(names, columns, strict=True)]
    )


def _batch(
    arrays: Iterable[pa.Array], columns: Sequence[_Column], schema: pa.Schema
) -> pa.RecordBatch:
    whole = [column.convert(array) for column, array in zip(columns, arrays, strict=True)]
    return pa.RecordBatch.from_arrays(whole, schema=schema)


def _write(file: IO[bytes], arrays: Sequence[pa.Array]) -> None:
    batch = pa.RecordBatch.from_arrays(arrays, names=[str(place) for place in range(len(arrays))])
    with pa.ipc.new_stream(file, batch.schema) as writer:
        writer.write_batch(batch)


def _read(file: IO[bytes]) -> Iterator[list[pa.Array]]:
    end = file.seek(0, 2)
    file.seek(0)
    while file.tell() < end:
        with pa.ipc.open_stream(file) as reader:
            for batch in reader:
                yield batch.columns


class _Column:
    """What was seen of a column."""

    def __init__(self, declared: str) -> None:
        # What SQLite from 3.41 on says of a column that was declared as nothing, such as an expression.
        self._declared = "" if declared.upper() in ("BLOB", "NUM") else declared.upper()
        self._seen: set[type] = set()
        self._is_bool = "BOOL" in self._declared
        self._time: str | None = None
        if "DATE" in self._declared or "TIMESTAMP" in self._declared:
            self._time = "date" if self._declared == "DATE" else "timestamp"

    def take(self, values: Sequence[Any]) -> pa.Array:
        """Values as an array of the type that these few have."""
        seen = set(map(type, values)) - {type(None)}
        self._seen |= seen
        if self._is_bool and not (seen <= {int} and set(values) <= {0, 1, None}):
            self._is_bool = False
        array = _array(values, seen)
        if (
            self._time is not None
            and seen
            and not (seen == {str} and _converts(array, _TIMES[self._time]))
        ):
            self._time = None
        return array

    def type(self) -> pa.DataType:
        """The type that holds all values."""
        if self._time is not None and self._seen <= {str}:
            return _TIMES[self._time]
        if self._is_bool and self._seen <= {int}:
            return pa.bool_()
        if bytes in self._seen:
            return pa.binary()
        if str in self._seen:
            return pa.string()
        if float in self._seen:
            return pa.float64()
        return self._affine()

    def _affine(self) -> pa.DataType:
        """SQLite's own rules for a declared type; a decimal that is whole is kept as an integer, but is none."""
        declared, whole = self._declared, self._seen == {int}
        if "INT" in declared:
            return pa.int64()
        if any(word in declared for word in ("REAL", "FLOA", "DOUB", "NUM", "DEC")):
            return pa.float64()
        if whole:
            return pa.int64()
        if any(word in declared for word in ("CHAR", "CLOB", "TEXT")):
            return pa.string()
        return pa.null()

    def convert(self, array: pa.Array) -> pa.Array:
        kind = self.type()
        if array.type == kind:
            return array
        if pa.types.is_binary(kind) and not pa.types.is_string(array.type):
            array = pc.cast(array, pa.string())
        return pc.cast(
            array, kind, safe=False
        )  # a whole number beside fractions may have more digits than they


def _array(values: Sequence[Any], seen: set[type]) -> pa.Array:
    if bytes in seen:
        return pa.array([_as_bytes(value) for value in values], pa.binary())
    if str in seen and len(seen) > 1:
        return pa.array([None if value is None else str(value) for value in values], pa.string())
    if str in seen:
        return pa.array(values, pa.string())
    if float in seen:
        return pa.array(
            [None if v is None else float(v) for v in values] if int in seen else values,
            pa.float64(),
        )
    return pa.array(values, pa.int64() if seen else pa.null())


def _as_bytes(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else str(value).encode()


def _converts(array: pa.Array, kind: pa.DataType) -> bool:
    try:
        pc.cast(array, kind)
    except pa.ArrowInvalid:
        return False
    return True
