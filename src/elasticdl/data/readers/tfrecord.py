"""TFRecord files as a source: one shard a file, a record is bytes. A .gz file is sequential.

A record is its length (8 bytes), the length's masked CRC-32C, its bytes, their masked CRC-32C.
Lengths are checked when the file is opened, bytes whenever they are read.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import IO

import google_crc32c

from elasticdl.data.blocks import Block, IndexedShard
from elasticdl.data.chunks import MAX_BYTES, MAX_RECORDS, bytes_array
from elasticdl.data.cursor import CursorPool, SequentialShard
from elasticdl.data.files import File, FileSource, ShardReader, for_each
from elasticdl.data.gzipped import is_gzipped, open_stream
from elasticdl.data.source import BYTES, Chunk
from elasticdl.errors import CorruptData

__all__ = ["open_tfrecord"]

_HEAD = struct.Struct("<QI")
_HEAD_SIZE = _HEAD.size
_CRC = struct.Struct("<I")
_OVERHEAD = _HEAD_SIZE + 4
_READ_BYTES = 1 << 20
_ADVICE = "The file is damaged or no TFRecord file: write it again, or name its reader_type."


def open_tfrecord(files: Sequence[File]) -> FileSource:
    """A source of TFRecord files. There are no parameters."""
    pool = CursorPool()
    readers = for_each(files, lambda file: _shard(file, pool))
    return FileSource([(f.url, r) for f, r in zip(files, readers, strict=True)], BYTES)


def masked_crc(data: bytes) -> int:
    """TFRecord's checksum: a CRC-32C, turned and shifted."""
    crc: int = google_crc32c.value(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def _shard(file: File, pool: CursorPool) -> ShardReader:
    decode = partial(_decode, file.url)
    with open_stream(file) as stream:
        if not is_gzipped(file):
            return IndexedShard(file, _blocks(stream, file.url), decode)
        num_records = sum(block.num_records for block in _blocks(stream, file.url))
    return SequentialShard(file.url, num_records, lambda: _stream(file, decode), pool)


def _stream(file: File, decode: Callable[[Block], Chunk]) -> Generator[Chunk, None, None]:
    with open_stream(file) as stream:
        for block in _blocks(stream, file.url):
            yield decode(block)


def _blocks(stream: IO[bytes], url: str) -> Iterator[Block]:
    """Cut a stream into blocks of whole records, checking each length."""
    data, position, first, offset = b"", 0, 0, 0
    while True:
        size, num_records = _fit(data, position, url, first, offset)
        if num_records:
            yield Block(first, num_records, offset, data[position : position + size])
            position, first, offset = position + size, first + num_records, offset + size
            continue
        wanted = _missing(data, position)
        more = stream.read(max(wanted, _READ_BYTES))
        data, position = data[position:] + more, 0
        if not more:
            if data:
                raise CorruptData(
                    f"{url}: record {first} at byte {offset}: the file ends inside of it. {_ADVICE}"
                )
            return


def _fit(data: bytes, position: int, url: str, first: int, offset: int) -> tuple[int, int]:
    """How many bytes and whole records from `position` on make a block."""
    unpack, size = _HEAD.unpack_from, len(data)
    start, num_records = position, 0
    while (
        num_records < MAX_RECORDS and position - start < MAX_BYTES and position + _HEAD_SIZE <= size
    ):
        length, checksum = unpack(data, position)
        if masked_crc(data[position : position + 8]) != checksum:
            where = f"record {first + num_records} at byte {offset + position - start}"
            raise CorruptData(f"{url}: {where}: the checksum of its length is wrong. {_ADVICE}")
        if position + _OVERHEAD + length > size:
            break
        position += _OVERHEAD + length
        num_records += 1
    return position - start, num_records


def _missing(data: bytes, position: int) -> int:
    """The bytes that the record at `position` needs beyond those at hand."""
    at_hand = len(data) - position
    if at_hand < _HEAD_SIZE:
        return _HEAD_SIZE - at_hand
    return int(_HEAD.unpack_from(data, position)[0]) + _OVERHEAD - at_hand


def _decode(url: str, block: Block) -> Chunk:
    data, position, records = block.data, 0, []
    unpack, unpack_crc = _HEAD.unpack_from, _CRC.unpack_from
    for number in range(block.num_records):
        start = position + _HEAD_SIZE
        if start > len(data) or (end := start + unpack(data, position)[0]) + 4 > len(data):
            raise _corrupt(url, block, number, position, "the file changed since it was opened")
        record = data[start:end]
        if masked_crc(record) != unpack_crc(data, end)[0]:
            raise _corrupt(url, block, number, position, "the checksum of its bytes is wrong")
        records.append(record)
        position = end + 4
    return bytes_array(records)


def _corrupt(url: str, block: Block, number: int, position: int, why: str) -> CorruptData:
    where = f"record {block.first + number} at byte {block.offset + position}"
    return CorruptData(f"{url}: {where}: {why}. {_ADVICE}")
