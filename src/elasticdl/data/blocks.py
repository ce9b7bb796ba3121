"""Blocks: runs of whole records in a file, so that a small range is found without reading the rest.

A format's scanner cuts a stream into blocks; its decoder turns the bytes of one block into a chunk.
With these two, a plain file becomes an `IndexedShard`: where its blocks start is remembered.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from elasticdl.data.chunks import cut
from elasticdl.data.files import File
from elasticdl.data.source import Chunk

__all__ = ["Block", "Decode", "IndexedShard"]


@dataclass(frozen=True, slots=True)
class Block:
    """Some hundreds of whole records of a stream."""

    first: int
    """The number of its first record."""
    num_records: int
    offset: int
    data: bytes


Decode = Callable[[Block], Chunk]


class IndexedShard:
    """A plain file whose blocks are known by their first record and byte offset."""

    sequential = False

    def __init__(self, file: File, blocks: Iterable[Block], decode: Decode) -> None:
        self._file = file
        self._decode = decode
        self._firsts: list[int] = []
        self._offsets: list[int] = []
        end_record = end_offset = 0
        for block in blocks:
            self._firsts.append(block.first)
            self._offsets.append(block.offset)
            end_record = block.first + block.num_records
            end_offset = block.offset + len(block.data)
        self.num_records = end_record
        self._ends = [*self._offsets[1:], end_offset]

    def read(self, start: int, end: int) -> Iterator[Chunk]:
        number = bisect_right(self._firsts, start) - 1
        while start < end:
            block = self._load(number)
            chunk = self._decode(block)
            stop = min(end, block.first + block.num_records)
            yield cut(chunk, start - block.first, stop - block.first)
            start, number = stop, number + 1

    def _load(self, number: int) -> Block:
        first, offset = self._firsts[number], self._offsets[number]
        last = number + 1 == len(self._firsts)
        after = self.num_records if last else self._firsts[number + 1]
        data = self._file.read(offset, self._ends[number])
        return Block(first, after - first, offset, data)
