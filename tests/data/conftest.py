"""Small files of every format, and what must be read from them."""

from __future__ import annotations

import csv
import gzip
import io
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from elasticdl.data import chunks
from elasticdl.data.recordio import RecordWriter
from elasticdl.data.source import Source


def masked(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def tfrecords(records: list[bytes]) -> bytes:
    out = b""
    for record in records:
        length = struct.pack("<Q", len(record))
        out += length + masked(length) + record + masked(record)
    return out


def recordio(records: list[bytes], **options: Any) -> bytes:
    file = io.BytesIO()
    with RecordWriter(file, **options) as writer:
        for record in records:
            writer.write(record)
    return file.getvalue()


def random_records(num: int, seed: int = 0, longest: int = 40) -> list[bytes]:
    rng = random.Random(seed)
    return [rng.randbytes(rng.randrange(longest)) for _ in range(num)]


def random_rows(num: int, seed: int = 0) -> list[list[str]]:
    """Rows of three fields with everything that CSV has to quote."""
    rng = random.Random(seed)
    alphabet = ["a", "ü", '"', '""', ",", "\n", "\r\n", " ", "\t", "5"]
    return [
        [str(i), "".join(rng.choices(alphabet, k=rng.randrange(6))), rng.choice(["", "x"])]
        for i in range(num)
    ]


def csv_bytes(rows: list[list[str]], sep: str = ",") -> bytes:
    text = io.StringIO()
    csv.writer(text, delimiter=sep).writerows([["id", "text", "flag"], *rows])
    return text.getvalue().encode()


def read(source: Source, shard: str, start: int, end: int) -> list[Any]:
    """The records of a range, one by one, as plain values."""
    found: list[Any] = []
    for chunk in source.read(shard, start, end):
        assert 1 <= chunks.count(chunk) <= chunks.MAX_RECORDS or shard == "memory"
        found += plain(chunk)
    return found


def plain(chunk: Any) -> list[Any]:
    if isinstance(chunk, tuple):
        return list(zip(*map(plain, chunk), strict=True))
    if isinstance(chunk, dict):
        columns = [plain(array) for array in chunk.values()]
        return [dict(zip(chunk, values, strict=True)) for values in zip(*columns, strict=True)]
    return [value.tolist() if isinstance(value, np.ndarray) else value for value in chunk]


def read_all(source: Source) -> list[Any]:
    return [r for s in source.shards for r in read(source, s.name, 0, s.num_records)]


Sample = tuple[Path, list[Any]]


@pytest.fixture
def samples(tmp_path: Path) -> Callable[[str, int], Sample]:
    """Makes a file of a format with so many records; returns its path and the records."""

    def make(kind: str, num: int) -> Sample:
        path = tmp_path / f"sample.{kind}"
        records: list[Any] = random_records(num)
        if kind == "recordio":
            path.write_bytes(recordio(records, max_chunk_bytes=300))
        elif kind == "tfrecord":
            path.write_bytes(tfrecords(records))
        elif kind == "tfrecord.gz":
            path.write_bytes(gzip.compress(tfrecords(records)))
        elif kind == "parquet":
            table = pa.table({"id": range(num), "text": records})
            pq.write_table(table, path, row_group_size=num)
            records = [{"id": i, "text": record} for i, record in enumerate(records)]
        else:
            rows = random_rows(num)
            data = csv_bytes(rows)
            path.write_bytes(gzip.compress(data) if kind.endswith(".gz") else data)
            records = [[field.encode() for field in row] for row in rows]
        return path, records

    return make
