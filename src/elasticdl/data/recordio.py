"""The RecordIO file format: compressed, checksummed chunks of length-prefixed records.

Two layouts share one magic number. Both are five little-endian words and then the compressed bytes:

    Go      magic, CRC-32 of the compressed bytes, compressor, compressed size, number of records
    Python  magic, number of records, CRC-32C of the compressed bytes, compressor, compressed size

The Go layout is the one that is written. Which of the two a file has is told by the checksum of its
first chunk. Inside a chunk each record is its length (a little-endian word) and its bytes.
"""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from types import TracebackType
from typing import IO, Any

import cramjam
import google_crc32c
import numpy as np
from numpy.typing import NDArray

from elasticdl.errors import CorruptData, DataError, InvalidValue, nearest

__all__ = ["COMPRESSIONS", "Body", "ChunkInfo", "RecordWriter", "decode", "index", "read_chunk"]

MAGIC = 0x01020304
_HEADER = struct.Struct("<5I")
_LENGTH = struct.Struct("<I")
_MAX_LENGTH = (1 << 32) - 1

COMPRESSIONS = ("none", "snappy", "gzip")
"""In the order of the Go layout's numbers; the Python layout counts from one."""


@dataclass(frozen=True, slots=True)
class ChunkInfo:
    """One chunk, as its header describes it."""

    number: int
    offset: int
    """Of the header, in bytes from the start of the file."""
    num_records: int
    size: int
    """Of the compressed bytes that follow the header."""
    compression: str
    checksum: int
    layout: str
    """`go` or `py`."""

    @property
    def payload(self) -> tuple[int, int]:
        """The byte range of the compressed bytes."""
        start = self.offset + _HEADER.size
        return start, start + self.size


@dataclass(frozen=True, slots=True)
class Body:
    """A decompressed chunk: record i is `data[ends[i - 1] + 4:ends[i]]`."""

    data: bytes
    ends: NDArray[np.int64]

    def records(self, start: int, end: int) -> list[bytes]:
        data = self.data
        borders = [int(self.ends[start - 1]) if start else 0, *self.ends[start:end].tolist()]
        return [data[begin + 4 : stop] for begin, stop in pairwise(borders)]


def index(fileobj: IO[bytes], name: str | None = None) -> list[ChunkInfo]:
    """The chunks of a file, read from their headers (and the first chunk, which tells the layout).

    Raises:
        DataError: the file is empty.
        CorruptData: it is no RecordIO file, or ends too early.
    """
    name = name or _name_of(fileobj)
    size = fileobj.seek(0, os.SEEK_END)
    if size == 0:
        raise DataError(f"{name} is empty (0 bytes). Write it again or leave it out.")
    layout = _layout(fileobj, name, size)
    chunks: list[ChunkInfo] = []
    offset = 0
    while offset < size:
        header = _read_at(fileobj, offset, _HEADER.size)
        chunk = _parse_header(header, layout, len(chunks), offset, size, name)
        chunks.append(chunk)
        offset = chunk.payload[1]
    return chunks


def read_chunk(fileobj: IO[bytes], chunk: ChunkInfo, name: str | None = None) -> list[bytes]:
    """All records of one chunk of `index(fileobj)`."""
    payload = _read_at(fileobj, chunk.payload[0], chunk.size)
    return decode(payload, chunk, name or _name_of(fileobj)).records(0, chunk.num_records)


def decode(payload: bytes, chunk: ChunkInfo, name: str) -> Body:
    """Check, decompress and walk the compressed bytes of a chunk."""
    if len(payload) != chunk.size:
        raise _corrupt(name, chunk, f"only {len(payload)} of its {chunk.size} bytes are there")
    checksum = _checksum(payload, chunk.layout)
    if checksum != chunk.checksum:
        raise _corrupt(name, chunk, f"its checksum is {checksum:#x} and not {chunk.checksum:#x}")
    try:
        data = _decompress(payload, chunk)
    except (cramjam.DecompressionError, EOFError, OSError, zlib.error) as e:
        raise _corrupt(name, chunk, f"its {chunk.compression} bytes do not unpack ({e})") from e
    return Body(data, _walk(data, chunk, name))


class RecordWriter:
    """Writes records in the Go layout.

    >>> import io
    >>> file = io.BytesIO()
    >>> with RecordWriter(file, compression="snappy") as writer:
    ...     writer.write(b"one")
    >>> [read_chunk(file, chunk) for chunk in index(file)]
    [[b'one']]
    """

    def __init__(
        self, fileobj: IO[bytes], compression: str = "snappy", max_chunk_bytes: int = 1 << 20
    ) -> None:
        if compression not in COMPRESSIONS:
            raise InvalidValue(
                f"Invalid compression {compression!r}. {nearest(compression, COMPRESSIONS)}"
            )
        if max_chunk_bytes < 1:
            raise InvalidValue(f"Invalid max_chunk_bytes {max_chunk_bytes}: give 1 or more.")
        self._file = fileobj
        self._compression = compression
        self._max_chunk_bytes = max_chunk_bytes
        self._pieces: list[bytes] = []
        self._num_bytes = 0
        self._wrote_chunk = False
        self.num_records = 0

    def write(self, record: bytes) -> None:
        """Add one record; a chunk is written when the next record would make it too long."""
        if len(record) > _MAX_LENGTH:
            raise InvalidValue(f"A record of {len(record)} bytes is too long: the limit is 4 GiB.")
        if self._pieces and self._num_bytes + 4 + len(record) > self._max_chunk_bytes:
            self.flush()
        self._pieces += (_LENGTH.pack(len(record)), record)
        self._num_bytes += 4 + len(record)
        self.num_records += 1

    def flush(self) -> None:
        """End the current chunk, if it holds any record."""
        if self._pieces:
            self._write_chunk()

    def close(self) -> None:
        """Write what is left. A file of no records gets one empty chunk, so that it has a magic."""
        if self._pieces or not self._wrote_chunk:
            self._write_chunk()

    def _write_chunk(self) -> None:
        payload = _compress(b"".join(self._pieces), self._compression)
        compressor = COMPRESSIONS.index(self._compression)
        words = (MAGIC, zlib.crc32(payload), compressor, len(payload), len(self._pieces) // 2)
        self._file.write(_HEADER.pack(*words) + payload)
        self._pieces, self._num_bytes, self._wrote_chunk = [], 0, True

    def __enter__(self) -> RecordWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()


def _layout(fileobj: IO[bytes], name: str, size: int) -> str:
    """The layout whose checksum fits the first chunk."""
    header = _read_at(fileobj, 0, _HEADER.size)
    unreadable: CorruptData | None = None
    misfit: CorruptData | None = None
    for layout in ("go", "py"):
        try:
            chunk = _parse_header(header, layout, 0, 0, size, name)
        except CorruptData as e:
            unreadable = unreadable or e
            continue
        payload = _read_at(fileobj, chunk.payload[0], chunk.size)
        if _checksum(payload, layout) == chunk.checksum:
            return layout
        misfit = _corrupt(name, chunk, "its checksum fits neither of the two layouts")
    # A header that makes sense in one layout says more about the damage than one that does not.
    damage = misfit or unreadable
    assert damage is not None
    raise damage


def _parse_header(
    header: bytes, layout: str, number: int, offset: int, file_size: int, name: str
) -> ChunkInfo:
    where = f"{name}: chunk {number} at byte {offset}"
    if len(header) < _HEADER.size:
        raise CorruptData(f"{where}: the file ends inside its header. {_ADVICE}")
    magic, *words = _HEADER.unpack(header)
    if magic != MAGIC:
        raise CorruptData(
            f"{where}: it starts with {magic:#010x} and not with RecordIO's magic number "
            f"{MAGIC:#010x}. {_ADVICE if number else _NOT_RECORDIO}"
        )
    if layout == "go":
        checksum, compressor, size, num_records = words
    else:
        num_records, checksum, compressor, size = words
        compressor -= 1
    if not 0 <= compressor < len(COMPRESSIONS):
        raise CorruptData(f"{where}: its header names no known compression. {_ADVICE}")
    if offset + _HEADER.size + size > file_size:
        raise CorruptData(
            f"{where}: its header announces {size} bytes, the file ends after "
            f"{file_size - offset - _HEADER.size}. {_ADVICE}"
        )
    compression = COMPRESSIONS[compressor]
    return ChunkInfo(number, offset, num_records, size, compression, checksum, layout)


def _walk(data: bytes, chunk: ChunkInfo, name: str) -> NDArray[np.int64]:
    """Where each record ends."""
    if chunk.num_records * 4 > len(data):
        why = f"{chunk.num_records} records do not fit in its {len(data)} bytes"
        raise _corrupt(name, chunk, why)
    ends = list(_ends(data, chunk, name))
    if surplus := len(data) - (ends[-1] if ends else 0):
        raise _corrupt(name, chunk, f"{surplus} bytes follow its last record")
    return np.array(ends, dtype=np.int64)


def _ends(data: bytes, chunk: ChunkInfo, name: str) -> Iterator[int]:
    unpack, size, end = _LENGTH.unpack_from, len(data), 0
    for number in range(chunk.num_records):
        if end + 4 > size:
            raise _corrupt(name, chunk, f"its record {number} starts past its last byte")
        end += 4 + unpack(data, end)[0]
        if end > size:
            raise _corrupt(name, chunk, f"its record {number} is longer than what is left of it")
        yield end


def _checksum(payload: bytes, layout: str) -> int:
    return zlib.crc32(payload) if layout == "go" else int(google_crc32c.value(payload))


def _decompress(payload: bytes, chunk: ChunkInfo) -> bytes:
    if chunk.compression == "none":
        return payload
    if chunk.compression == "gzip":
        return gzip.decompress(payload)
    snappy: Any = cramjam.snappy
    framed = chunk.layout == "go"
    return bytes(snappy.decompress(payload) if framed else snappy.decompress_raw(payload))


def _compress(data: bytes, compression: str) -> bytes:
    if compression == "snappy":
        return bytes(cramjam.snappy.compress(data))
    return gzip.compress(data, mtime=0) if compression == "gzip" else data


def _corrupt(name: str, chunk: ChunkInfo, why: str) -> CorruptData:
    return CorruptData(f"{name}: chunk {chunk.number} at byte {chunk.offset}: {why}. {_ADVICE}")


_ADVICE = "The file is damaged: copy or write it again."
_NOT_RECORDIO = "Is it a RecordIO file? Name another format with reader_type."


def _read_at(fileobj: IO[bytes], offset: int, size: int) -> bytes:
    fileobj.seek(offset)
    return fileobj.read(size)


def _name_of(fileobj: IO[bytes]) -> str:
    return str(getattr(fileobj, "name", None) or getattr(fileobj, "path", None) or "the file")
