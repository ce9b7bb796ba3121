"""The sizes of chunks and what is done to every chunk whatever its form: count it, cut it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from elasticdl.data.source import ArraySpec, Chunk, Structure

__all__ = ["MAX_BYTES", "MAX_RECORDS", "bytes_array", "count", "cut", "spans", "structure_of"]

MAX_RECORDS = 512
"""Enough that a Python call a chunk costs little, few enough that a small range wastes little."""
MAX_BYTES = 1 << 20


def bytes_array(records: Sequence[bytes]) -> NDArray[Any]:
    """An array of bytes objects (`np.array` would make strings of one width)."""
    array = np.empty(len(records), dtype=object)
    array[:] = records
    return array


def count(chunk: Chunk) -> int:
    """The number of records in a chunk."""
    if isinstance(chunk, tuple):
        return count(chunk[0])
    if isinstance(chunk, Mapping):
        return count(next(iter(chunk.values())))
    return len(chunk)


def cut(chunk: Chunk, start: int, end: int) -> Chunk:
    """The records [start, end) of a chunk; no copy."""
    return cast(Chunk, _map(chunk, lambda array: array[start:end]))


def structure_of(chunk: Chunk) -> Structure:
    """The form of one record of a chunk."""
    return cast(Structure, _map(chunk, lambda array: ArraySpec(array.dtype, array.shape[1:])))


def spans(ends: NDArray[np.int64], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Cut records [start, end) into spans of bounded size; record i ends at byte `ends[i]`."""
    while start < end:
        begin = int(ends[start - 1]) if start else 0
        fitting = int(np.searchsorted(ends, begin + MAX_BYTES, side="right"))
        stop = max(start + 1, min(start + MAX_RECORDS, fitting, end))
        yield start, stop
        start = stop


def _map(chunk: Chunk, function: Callable[[NDArray[Any]], Any]) -> Any:
    if isinstance(chunk, tuple):
        return tuple(_map(part, function) for part in chunk)
    if isinstance(chunk, Mapping):
        return {name: _map(part, function) for name, part in chunk.items()}
    return function(chunk)
