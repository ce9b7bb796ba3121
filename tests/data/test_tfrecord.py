"""TFRecord: files of TensorFlow's own writer, and damage."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from elasticdl.data.registry import open_source
from elasticdl.errors import CorruptData, DataError

from .conftest import random_records, read_all, tfrecords


@pytest.mark.parametrize("name", ["a.tfrecord", "a.tfrecords.gz", "a.tfrecord-00000-of-00001"])
def test_records_match_when_written_by_tensorflow(name: str, tmp_path: Path) -> None:
    import tensorflow as tf

    records = [*random_records(1500), b"", bytes(100_000)]
    path = str(tmp_path / name)
    with tf.io.TFRecordWriter(path, "GZIP" if name.endswith("gz") else "") as writer:
        for record in records:
            writer.write(record)
    assert read_all(open_source(path)) == records


@pytest.mark.parametrize("gzipped", [False, True])
def test_every_truncation_is_noticed(gzipped: bool, tmp_path: Path) -> None:
    data = tfrecords([b"one", b"", b"three"])
    ends = {0, 16 + 3, 16 + 3 + 16}
    path = tmp_path / ("a.tfrecord.gz" if gzipped else "a.tfrecord")
    for size in set(range(len(data))) - ends:
        path.write_bytes(gzip.compress(data[:size]) if gzipped else data[:size])
        with pytest.raises(CorruptData, match=r"record \d at byte \d+: the file ends inside of it"):
            read_all(open_source(str(path)))


def test_every_changed_byte_is_noticed(tmp_path: Path) -> None:
    data = tfrecords([b"one", b"", b"three"])
    path = tmp_path / "a.tfrecord"
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1
        path.write_bytes(changed)
        with pytest.raises(CorruptData, match=r"a\.tfrecord: record \d at byte \d+"):
            read_all(open_source(str(path)))


def test_damage_names_record_and_byte(tmp_path: Path) -> None:
    records = [b"x" * 10] * 2000
    data = bytearray(tfrecords(records))
    data[1500 * 26 + 15] ^= 1
    path = tmp_path / "a.tfrecord"
    path.write_bytes(data)
    source = open_source(str(path))
    with pytest.raises(CorruptData, match="record 1500 at byte 39000: the checksum of its bytes"):
        read_all(source)


def test_truncated_gzip_is_corrupt(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord.gz"
    path.write_bytes(gzip.compress(tfrecords(random_records(100)))[:-30])
    with pytest.raises(CorruptData, match="cannot decompress"):
        open_source(str(path))


def test_file_cut_after_it_was_opened_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(tfrecords(random_records(10)))
    source = open_source(str(path))
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(CorruptData, match="changed since it was opened"):
        read_all(source)


def test_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").touch()
    with pytest.raises(DataError, match="no records"):
        open_source(str(tmp_path / "a.tfrecord"))
