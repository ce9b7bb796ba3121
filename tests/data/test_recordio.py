"""The RecordIO format: the vectors of both original implementations, writing, and damage."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import cramjam
import pytest

from elasticdl.data import recordio
from elasticdl.data.recordio import RecordWriter, index, read_chunk
from elasticdl.data.registry import open_source
from elasticdl.errors import CorruptData, DataError, InvalidValue

from .conftest import random_records, read_all
from .conftest import recordio as written

VECTORS = sorted((Path(__file__).parents[1] / "fixtures" / "recordio").glob("*.recordio"))
RECORDS = [b"record %d " % i + bytes(i % 7) for i in range(50)] + [b""]


def records_of(data: bytes) -> list[bytes]:
    file = io.BytesIO(data)
    return [record for chunk in index(file) for record in read_chunk(file, chunk)]


def test_there_are_six_vectors() -> None:
    assert len(VECTORS) == 6


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_records_match_when_written_by_an_original(path: Path) -> None:
    assert records_of(path.read_bytes()) == RECORDS
    assert read_all(open_source(str(path))) == RECORDS


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_index_tells_layout_and_compression(path: Path) -> None:
    with path.open("rb") as file:
        chunks = index(file)
    layout, compression = path.stem.split("-")
    assert {(chunk.layout, chunk.compression) for chunk in chunks} == {(layout, compression)}
    assert sum(chunk.num_records for chunk in chunks) == 51
    assert [chunk.number for chunk in chunks] == list(range(len(chunks)))


@pytest.mark.parametrize("compression", recordio.COMPRESSIONS)
@pytest.mark.parametrize("max_chunk_bytes", [1, 50, 1 << 20])
def test_records_come_back_when_written(compression: str, max_chunk_bytes: int) -> None:
    for records in ([b""], [b"", b"", b""], random_records(100), [b"x" * 5000, b"", b"y" * 300]):
        data = written(records, compression=compression, max_chunk_bytes=max_chunk_bytes)
        assert records_of(data) == records


@pytest.mark.parametrize("compression", recordio.COMPRESSIONS)
def test_header_words_are_those_of_the_go_layout(compression: str) -> None:
    data = written([b"one", b""], compression=compression)
    magic, checksum, compressor, size, num_records = struct.unpack_from("<5I", data)
    assert (magic, size, num_records) == (0x01020304, len(data) - 20, 2)
    assert checksum == zlib.crc32(data[20:])
    assert recordio.COMPRESSIONS[compressor] == compression
    if compression == "snappy":
        assert data[20:30] == b"\xff\x06\x00\x00sNaPpY"


@pytest.mark.parametrize("compression", recordio.COMPRESSIONS)
def test_file_of_no_records_has_a_magic_and_none_are_read(compression: str, tmp_path: Path) -> None:
    path = tmp_path / "none.recordio"
    path.write_bytes(written([], compression=compression))
    assert records_of(path.read_bytes()) == []
    with pytest.raises(DataError, match="no records in"):
        open_source(str(path))


def test_writer_writes_nothing_more_when_the_body_raises() -> None:
    file = io.BytesIO()
    with pytest.raises(KeyError), RecordWriter(file) as writer:
        writer.write(b"x")
        raise KeyError
    assert file.getvalue() == b""


def test_writer_refuses_an_unknown_compression() -> None:
    with pytest.raises(InvalidValue, match="Did you mean 'snappy'"):
        RecordWriter(io.BytesIO(), compression="snapy")


def test_empty_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.recordio"
    path.touch()
    with path.open("rb") as file, pytest.raises(DataError, match=r"empty\.recordio is empty"):
        index(file)
    with pytest.raises(DataError, match="no records"):
        open_source(str(path))


def test_every_truncation_is_noticed() -> None:
    data = written(random_records(20), max_chunk_bytes=100)
    whole = {chunk.offset for chunk in index(io.BytesIO(data))}
    for size in range(1, len(data)):
        if size not in whole:
            with pytest.raises(CorruptData, match=r"chunk \d+ at byte \d+"):
                records_of(data[:size])


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_every_changed_byte_is_noticed_or_changes_nothing(path: Path) -> None:
    data = path.read_bytes()
    with path.open("rb") as file:
        second = index(file)[1].payload[1]
    for place in range(second):
        changed = bytearray(data)
        changed[place] ^= 0x10
        with pytest.raises(CorruptData):
            records_of(bytes(changed))


def chunk_of(payload: bytes, num_records: int, compressor: int = 0) -> bytes:
    words = (0x01020304, zlib.crc32(payload), compressor, len(payload), num_records)
    return struct.pack("<5I", *words) + payload


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"abcd" * 10, "magic number"),
        (b"\x04\x03\x02\x01", "ends inside its header"),
        (chunk_of(b"\x01\0\0\0a", 2), "2 records do not fit in its 5 bytes"),
        (chunk_of(b"\x09\0\0\0abcd", 1), "record 0 is longer than what is left"),
        (chunk_of(b"\x04\0\0\0abcd", 2), "record 1 starts past its last byte"),
        (chunk_of(b"\x01\0\0\0abcde", 1), "4 bytes follow its last record"),
        (chunk_of(b"garbage", 1, 1), "snappy bytes do not unpack"),
        (chunk_of(b"garbage", 1, 2), "gzip bytes do not unpack"),
        (chunk_of(bytes(cramjam.snappy.compress(b"\0" * 40))[:-3], 1, 1), "do not unpack"),
        (chunk_of(b"\0\0\0\0", 1, 9), "no known compression"),
    ],
)
def test_damage_is_named(data: bytes, words: str) -> None:
    with pytest.raises(CorruptData, match=words) as caught:
        records_of(data)
    assert "chunk 0 at byte 0" in str(caught.value)


def test_damage_in_a_later_chunk_names_file_chunk_and_byte(tmp_path: Path) -> None:
    data = bytearray(written(random_records(50), max_chunk_bytes=100))
    chunk = index(io.BytesIO(bytes(data)))[3]
    data[chunk.payload[0]] ^= 1
    path = tmp_path / "bad.recordio"
    path.write_bytes(data)
    source = open_source(str(path))
    with pytest.raises(
        CorruptData, match=rf"bad\.recordio: chunk 3 at byte {chunk.offset}: its ch"
    ):
        read_all(source)
