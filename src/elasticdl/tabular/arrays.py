"""Arrow to numpy: the columns of a plan as one array each, a value a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elasticdl.errors import DataError, nearest
from elasticdl.tabular.plan import Column, Label
from elasticdl.tabular.several import misfits, shown
from elasticdl.tabular.types import (
    CASTABLE,
    MISSING,
    Array,
    family,
    find,
    floats,
    integers,
    plain,
    seconds,
    texts,
)

__all__ = ["MISSING", "check_columns", "to_arrays"]


def to_arrays(batch: pa.RecordBatch, columns: Sequence[Column | Label]) -> dict[str, np.ndarray]:
    """The columns as numpy, by their dtype.

    A NULL is NaN in floats, MISSING in int64 and b"" in strings. Dates and timestamps are seconds since 1970.
    Values of another type than in training are converted where nothing is lost by it.

    Raises:
      DataError: a column is missing, or has values that do not convert.

    >>> batch = pa.record_batch({"x": [1, None], "s": ["a", None]})
    >>> to_arrays(batch, [Column("x", "float32"), Column("s", "string")])
    {'x': array([ 1., nan], dtype=float32), 's': array([b'a', b''], dtype=object)}
    """
    places = _places(batch.schema.names, columns)
    return {
        column.name: _convert(batch.column(place), column)
        for column, place in zip(columns, places, strict=True)
    }


def check_columns(schema: pa.Schema, columns: Sequence[Column | Label]) -> None:
    """Refuse rows that lack a column, or have one of a type whose values never convert.

    Raises:
      DataError: says which.
    """
    places = _places(schema.names, columns)
    for column, place in zip(columns, places, strict=True):
        _convert(pa.array([], schema.field(place).type), column)


def _places(names: Sequence[str], columns: Sequence[Column | Label]) -> list[int]:
    found = {column.name: find(column.name, names) for column in columns}
    if missing := [name for name, there in found.items() if there is None]:
        raise _absent(missing, names)
    return [names.index(str(found[column.name])) for column in columns]


def _absent(missing: Sequence[str], names: Sequence[str]) -> DataError:
    many = len(missing) > 1
    shown = ", ".join(map(repr, missing[:10])) + (", ..." if len(missing) > 10 else "")
    return DataError(
        f"The rows have no {'columns' if many else 'column'} {shown}, which the model takes. "
        f"Select {'them' if many else 'it'}. {nearest(missing[0], names)}".rstrip()
    )


def _convert(array: Array, column: Column | Label) -> np.ndarray:
    kind = family(array.type)
    try:
        if kind == "null":
            return _all_null(len(array), column.dtype)
        return _BY_DTYPE[column.dtype](array, kind, column)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise _changed(array, column) from error


def _changed(array: Array, column: Column | Label) -> DataError:
    had = column.source or column.dtype
    return DataError(
        f"The column {column.name!r} was {had} when the model was trained, and is {array.type} now, with "
        f"values that do not become {had}. Cast it in the SELECT, or train the model anew."
    )


def _all_null(num_rows: int, dtype: str) -> np.ndarray:
    if dtype == "string":
        return np.full(num_rows, b"", dtype=object)
    return np.full(num_rows, MISSING if dtype == "int64" else np.nan, dtype=dtype)


def _to_float(array: Array, kind: str | None, column: Column | Label) -> np.ndarray:
    values = plain(array)
    if kind == "text":
        trimmed = pc.utf8_trim_whitespace(values)
        values = trimmed.cast(pa.bool_()) if column.source == "bool" else trimmed.cast(pa.float64())
    elif kind not in CASTABLE:
        raise _changed(array, column)
    with np.errstate(over="ignore"):  # too large for a float32 is infinite
        return floats(values).astype(column.dtype, copy=False)


def _to_int64(array: Array, kind: str | None, column: Column | Label) -> np.ndarray:
    values, was_time = plain(array), _is_time(column.source)
    if kind == "time" and (was_time or not column.source):
        return seconds(values)
    if kind == "text":
        trimmed = pc.utf8_trim_whitespace(values)
        if was_time:
            zone = "UTC" if "tz=" in column.source else None
            return seconds(trimmed.cast(pa.timestamp("us", zone)))
        return integers(trimmed.cast(pa.bool_()) if column.source == "bool" else trimmed)
    if kind not in CASTABLE or was_time:
        raise _changed(array, column)
    if kind == "number" and not pa.types.is_decimal(values.type):
        values = pa.array(floats(values), from_pandas=True)
    return integers(values)


def _to_text(array: Array, kind: str | None, column: Column | Label) -> np.ndarray:
    if kind is None:
        raise _changed(array, column)
    if isinstance(column, Column) and column.several is not None:
        _check_several(plain(array).cast(pa.string()), column)
    if kind in ("text", "binary"):
        return texts(array)
    return texts(plain(array).cast(pa.string()))


def _check_several(array: Array, column: Column) -> None:
    """TensorFlow would say of which step it is, not of which column."""
    assert column.several is not None
    if len(wrong := misfits(array, column.several)):
        example = repr(wrong[0].as_py())
        raise DataError(
            f"The column {column.name!r} has {example if len(example) < 80 else example[:77] + '...'}, and the model "
            f"takes {shown(column.several)}."
        )


def _is_time(source: str) -> bool:
    return source.startswith(("date", "timestamp"))


_BY_DTYPE: dict[str, Callable[[Array, str | None, Column | Label], np.ndarray]] = {
    "float32": _to_float,
    "float64": _to_float,
    "int64": _to_int64,
    "string": _to_text,
}
