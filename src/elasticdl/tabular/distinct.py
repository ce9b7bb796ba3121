"""The different values of a column, counted exactly while they are few, and estimated beyond."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pyarrow.compute as pc

from elasticdl.tabular.types import Array

__all__ = ["MAX_DISTINCT", "Distinct"]

MAX_DISTINCT = 10_000
MAX_BYTES = 8 << 20
MAX_HASHED = 1 << 18
_KEPT = 1024
_SPACE = 2**32


class Distinct:
    """How often each value occurs, for at most `MAX_DISTINCT` values of some megabytes.

    Beyond, only their number is estimated, for text, by the first values: of many hashes that are spread evenly
    over a range, the 1,024th smallest says how dense they are.

    Attributes:
      seen: how many values were looked at for `number`.
    """

    def __init__(self, *, estimated: bool) -> None:
        self.counts: dict[Any, int] | None = {}
        """None when there were too many."""
        self.seen = 0
        self._bytes = 0
        self._smallest: np.ndarray | None = np.empty(0, np.uint32) if estimated else None

    def add(self, values: Array) -> None:
        """Values without NULLs."""
        if self.counts is not None:
            self.seen += len(values)
            self._count(values)
        elif self._smallest is not None and self.seen < MAX_HASHED:
            self.seen += len(values)
            self._estimate(pc.unique(values).to_pylist())

    def number(self) -> int | None:
        """How many different values there are, about; None when unknown but many."""
        if self.counts is not None:
            return len(self.counts)
        if self._smallest is None:
            return None
        if len(self._smallest) < _KEPT:
            return len(self._smallest)
        return int((_KEPT - 1) * _SPACE / max(1, int(self._smallest[-1])))

    def _count(self, values: Array) -> None:
        counted: Any = pc.value_counts(values)
        if not self._add_counts(counted):
            if self._smallest is not None:
                self._estimate([*(self.counts or ()), *counted.field(0).to_pylist()])
            self.counts = None

    def _add_counts(self, counted: Any) -> bool:
        """Whether there was room for them."""
        counts = self.counts
        assert counts is not None
        if len(counted) > MAX_DISTINCT:
            return False
        each = zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True)
        for value, count in each:
            if value not in counts:
                counts[value] = 0
                self._bytes += len(value) if isinstance(value, str | bytes) else 8
            counts[value] += count
            if len(counts) > MAX_DISTINCT or self._bytes > MAX_BYTES:
                return False
        return True

    def _estimate(self, values: list[Any]) -> None:
        hashes = np.fromiter((_hash(value) for value in values), np.uint32, len(values))
        assert self._smallest is not None
        self._smallest = np.unique(np.concatenate([self._smallest, hashes]))[:_KEPT]


def _hash(value: str | bytes) -> int:
    return zlib.crc32(value.encode() if isinstance(value, str) else value)
