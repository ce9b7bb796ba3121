"""RecordIO files as a source: one shard a file, a record is bytes."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import accumulate

from elasticdl.data import recordio
from elasticdl.data.chunks import bytes_array, spans
from elasticdl.data.files import File, FileSource, for_each
from elasticdl.data.source import BYTES, Chunk

__all__ = ["open_recordio"]

_CACHE_BYTES = 64 << 20


def open_recordio(files: Sequence[File]) -> FileSource:
    """A source of RecordIO files. There are no parameters."""
    cache = _BodyCache(_CACHE_BYTES)
    readers = for_each(files, lambda file: _Shard(file, cache))
    return FileSource([(f.url, r) for f, r in zip(files, readers, strict=True)], BYTES)


class _BodyCache:
    """Decompressed chunks: a chunk may hold many leases, which are read one after the other."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._num_bytes = 0
        self._bodies: OrderedDict[tuple[str, int], recordio.Body] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[str, int]) -> recordio.Body | None:
        with self._lock:
            if key in self._bodies:
                self._bodies.move_to_end(key)
            return self._bodies.get(key)

    def put(self, key: tuple[str, int], body: recordio.Body) -> None:
        with self._lock:
            if key in self._bodies:
                return
            self._bodies[key] = body
            self._num_bytes += _cost(body)
            while self._num_bytes > self._max_bytes and len(self._bodies) > 1:
                self._num_bytes -= _cost(self._bodies.popitem(last=False)[1])


def _cost(body: recordio.Body) -> int:
    return len(body.data) + body.ends.nbytes


class _Shard:
    sequential = False

    def __init__(self, file: File, cache: _BodyCache) -> None:
        self._file = file
        self._cache = cache
        self._chunks: list[recordio.ChunkInfo] = []
        if file.size:  # an empty file among others is a shard without records
            with file.open() as fileobj:
                self._chunks = recordio.index(fileobj, file.url)
        self._ends = list(accumulate(chunk.num_records for chunk in self._chunks))
        self.num_records = self._ends[-1] if self._ends else 0

    def read(self, start: int, end: int) -> Iterator[Chunk]:
        number = bisect_right(self._ends, start)
        while start < end:
            chunk = self._chunks[number]
            first = self._ends[number] - chunk.num_records
            stop = min(end, self._ends[number])
            body = self._body(chunk)
            for a, b in spans(body.ends, start - first, stop - first):
                yield bytes_array(body.records(a, b))
            start, number = stop, number + 1

    def _body(self, chunk: recordio.ChunkInfo) -> recordio.Body:
        key = (self._file.url, chunk.number)
        body = self._cache.get(key)
        if body is None:
            body = recordio.decode(self._file.read(*chunk.payload), chunk, self._file.url)
            self._cache.put(key, body)
        return body
