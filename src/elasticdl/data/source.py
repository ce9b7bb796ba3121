"""What the engine needs of data: named shards of known length, read by range in chunks.

A *chunk* is some hundreds of records as numpy arrays that share their first dimension: one array
for formats of plain records (RecordIO, TFRecord: bytes objects), a `[records, columns]` array for
CSV, a dict of arrays for Parquet; dicts and tuples nest. Records travel in chunks because a Python call a record costs
more than the record's work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["ArraySpec", "Chunk", "Metadata", "Shard", "Source", "Structure"]

Array = NDArray[Any]
Chunk = Array | Mapping[str, "Chunk"] | tuple["Chunk", ...]


@dataclass(frozen=True)
class ArraySpec:
    """One record's array: its type and shape (None where it varies). `object` means bytes."""

    dtype: np.dtype[Any]
    shape: tuple[int | None, ...] = ()


Structure = ArraySpec | Mapping[str, "Structure"] | tuple["Structure", ...]

BYTES = ArraySpec(np.dtype(object))


@dataclass(frozen=True)
class Shard:
    """A named run of records. `sequential` shards are cheap to read only from front to back."""

    name: str
    num_records: int
    sequential: bool = False


@dataclass(frozen=True)
class Metadata:
    """The third argument of `dataset_fn(dataset, mode, metadata)`."""

    column_names: tuple[str, ...] | None = None


class Source(Protocol):
    """Where records come from. One instance may be read from several threads at once."""

    @property
    def shards(self) -> Sequence[Shard]:
        """All shards, in a stable order; none of them empty."""

    @property
    def metadata(self) -> Metadata: ...

    @property
    def structure(self) -> Structure:
        """The form of one record."""

    def read(self, shard: str, start: int, end: int) -> Iterator[Chunk]:
        """The records [start, end) of a shard, in order, in chunks of the reader's liking."""
