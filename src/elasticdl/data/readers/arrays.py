"""Arrays in memory as a source: one shard named `memory`.

What Keras' `fit` takes: an array, a dict of arrays, a tuple of these such as `(features, labels)`,
nested as the model's inputs and outputs are; a list of arrays counts as a tuple, and a pandas
DataFrame as a dict of its columns. Strings become bytes and dates int64, as with
Parquet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from elasticdl.data.chunks import MAX_BYTES, bytes_array, count, cut, structure_of
from elasticdl.data.files import check_range
from elasticdl.data.source import Chunk, Metadata, Shard, Structure
from elasticdl.errors import DataError

__all__ = ["ArraySource"]

_NAME = "memory"


class ArraySource:
    """Records are the rows of arrays that share their first dimension.

    >>> import numpy as np
    >>> source = ArraySource(({"x": np.zeros((10, 3))}, np.arange(10)))
    >>> source.shards[0].num_records
    10
    """

    def __init__(self, data: Any) -> None:
        self._data = _chunk(data, "the data")
        num_records = _check_lengths(self._data)
        self._shards = (Shard(_NAME, num_records),)
        self._step = max(1, MAX_BYTES * num_records // max(1, _num_bytes(self._data)))
        names = tuple(self._data) if isinstance(self._data, Mapping) else None
        self._metadata = Metadata(column_names=names)

    @property
    def shards(self) -> Sequence[Shard]:
        return self._shards

    @property
    def metadata(self) -> Metadata:
        return self._metadata

    @property
    def structure(self) -> Structure:
        return structure_of(self._data)

    @cached_property
    def tensors(self) -> Any:
        """The arrays as TensorFlow's, made once: its own slicing needs no Python call a chunk."""
        import tensorflow as tf

        with tf.init_scope(), tf.device("CPU:0"):
            return tf.nest.map_structure(tf.constant, self._data)

    def read(self, shard: str, start: int, end: int) -> Iterator[Chunk]:
        check_range({_NAME: self._shards[0]}, shard, start, end)
        return (cut(self._data, i, min(i + self._step, end)) for i in range(start, end, self._step))


def _chunk(data: Any, what: str) -> Chunk:
    if _is_several(data):
        if not data:
            raise DataError("There are no arrays in (). Give for example (features, labels).")
        inside = "item " if what == "the data" else f"{what}."
        return tuple(_chunk(item, f"{inside}{i}") for i, item in enumerate(data))
    if hasattr(data, "columns") and hasattr(data, "__getitem__"):
        data = {name: data[name] for name in data.columns}
    if not isinstance(data, Mapping):
        return _array(data, what)
    if not data:
        raise DataError(f"There are no columns in {what}. Give at least one array.")
    if len({str(name) for name in data}) < len(data):
        raise DataError(f"Two columns of {what} have one name: {', '.join(map(str, data))}.")
    return {str(name): _chunk(column, f"column {str(name)!r}") for name, column in data.items()}


def _is_several(data: Any) -> bool:
    """Whether a tuple or list holds arrays, as Keras sees it, and is not itself written for one."""
    if isinstance(data, tuple):
        return not data or not all(
            isinstance(item, bool | int | float | str | bytes) for item in data
        )
    return isinstance(data, list) and any(
        isinstance(item, Mapping | tuple) or getattr(item, "ndim", 0) > 0 for item in data
    )


def _array(data: Any, what: str) -> NDArray[Any]:
    try:
        array = np.asarray(data.to_numpy() if hasattr(data, "to_numpy") else data)
    except ValueError as e:
        raise DataError(
            f"Cannot read {what}: its rows are not of one shape. Give an array whose rows are, or "
            "a tuple of several arrays."
        ) from e
    if array.ndim == 0:
        raise DataError(
            f"Cannot read {what}, of type {type(data).__name__}, as records: give a numpy array, a dict "
            "or tuple of arrays, a DataFrame, or the path of a file."
        )
    if array.dtype.kind in "mM":
        return array.astype(np.int64)
    if array.dtype.kind in "biufc":
        return array
    flat = bytes_array([_bytes(value, what) for value in array.ravel().tolist()])
    return cast(NDArray[Any], flat.reshape(array.shape))


def _bytes(value: Any, what: str) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if value is None or (isinstance(value, float) and value != value):
        return b""  # how pandas spells a missing string
    raise DataError(
        f"Cannot read {what}: among its values is {value!r}, a {type(value).__name__}. Give an "
        "array of numbers or of strings, all rows of one shape."
    )


def _check_lengths(chunk: Chunk) -> int:
    lengths = {what: len(array) for what, array in _named(chunk)}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{what} has {length}" for what, length in lengths.items())
        raise DataError(f"The arrays are not of one length: {shown}. Each row is one record.")
    if not count(chunk):
        raise DataError("There are no records: the arrays are empty. Give at least one row.")
    return count(chunk)


def _num_bytes(chunk: Chunk) -> int:
    return sum(
        sum(map(len, array.ravel())) if array.dtype == object else array.nbytes
        for _, array in _named(chunk)
    )


def _named(chunk: Chunk, what: str = "") -> Iterator[tuple[str, NDArray[Any]]]:
    if isinstance(chunk, tuple):
        for i, part in enumerate(chunk):
            yield from _named(part, f"{what}.{i}" if what else f"array {i}")
    elif isinstance(chunk, Mapping):
        for name, part in chunk.items():
            yield from _named(part, repr(name))
    else:
        yield what or "the array", chunk
