"""Cursors: where the last range of a sequential shard ended, for the next one to go on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator

from elasticdl.data.chunks import count, cut
from elasticdl.data.source import Chunk
from elasticdl.errors import DataError

__all__ = ["CursorPool", "SequentialShard"]

Chunks = Generator[Chunk, None, None]


class _Cursor:
    """A stream of a shard's chunks and the number of the record that comes next."""

    def __init__(self, key: str, chunks: Chunks) -> None:
        self.key = key
        self.position = 0
        self._chunks = chunks
        self._left: Chunk | None = None

    def skip_to(self, start: int) -> None:
        while self.position < start:
            self.take(start - self.position)

    def take(self, limit: int) -> Chunk:
        """The next records, at most `limit` of them."""
        chunk = next(self._chunks, None) if self._left is None else self._left
        if chunk is None:
            raise DataError(
                f"{self.key} ends at record {self.position}: it held more when it was opened. "
                "Do not change data while it is read."
            )
        size = count(chunk)
        stop = min(limit, size)
        self._left = cut(chunk, stop, size) if stop < size else None
        self.position += stop
        return chunk if stop == size else cut(chunk, 0, stop)

    def close(self) -> None:
        self._chunks.close()


class CursorPool:
    """The idle cursors of a source's shards, the longest unused closed when there are too many.

    A cursor holds an open file, so the bound is for the whole source and not for each shard.
    """

    def __init__(self, max_idle: int = 16) -> None:
        self._max_idle = max_idle
        self._idle: list[_Cursor] = []
        self._lock = threading.Lock()

    def take(self, key: str, start: int) -> _Cursor | None:
        """The idle cursor of a shard that is nearest before `start`."""
        with self._lock:
            fitting = [c for c in self._idle if c.key == key and c.position <= start]
            if not fitting:
                return None
            best = max(fitting, key=lambda c: c.position)
            self._idle.remove(best)
            return best

    def give(self, cursor: _Cursor) -> None:
        with self._lock:
            self._idle.append(cursor)
            surplus = self._idle[: -self._max_idle]
            del self._idle[: -self._max_idle]
        for unused in surplus:
            unused.close()


class SequentialShard:
    """A shard that can only be read from its front: compressed files, Parquet row groups."""

    sequential = True

    def __init__(
        self, key: str, num_records: int, stream: Callable[[], Chunks], pool: CursorPool
    ) -> None:
        self.num_records = num_records
        self._key = key
        self._stream = stream
        self._pool = pool

    def read(self, start: int, end: int) -> Iterator[Chunk]:
        cursor = self._pool.take(self._key, start) or _Cursor(self._key, self._stream())
        reusable = False
        try:
            cursor.skip_to(start)
            while cursor.position < end:
                chunk = cursor.take(end - cursor.position)
                reusable = True
                yield chunk
                reusable = False
            reusable = cursor.position < self.num_records
        finally:
            # A range given up half-way, at the yield, is as good a place to go on from as its end.
            if reusable:
                self._pool.give(cursor)
            else:
                cursor.close()
