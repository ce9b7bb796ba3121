"""Every range of every format, threads, and the cursors of sequential shards."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from elasticdl.data import chunks
from elasticdl.data.cursor import CursorPool, SequentialShard
from elasticdl.data.registry import open_source
from elasticdl.errors import InvalidValue, UnknownName

from .conftest import Sample, plain, read, read_all

Samples = Callable[[str, int], Sample]
KINDS = ["recordio", "tfrecord", "tfrecord.gz", "csv", "csv.gz", "parquet"]


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of 7 records, so that small files have many."""
    for module in ("chunks", "readers.tfrecord", "readers.csv_scan", "readers.parquet"):
        monkeypatch.setattr(f"elasticdl.data.{module}.MAX_RECORDS", 7)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("small_chunks")
def test_every_range_is_a_slice_of_the_whole(kind: str, samples: Samples) -> None:
    path, records = samples(kind, 30)
    source = open_source(str(path))
    [shard] = source.shards
    assert shard.num_records == 30
    assert shard.sequential == (kind.endswith(".gz") or kind == "parquet")
    for start in range(31):
        for end in range(start, 31):
            assert read(source, shard.name, start, end) == records[start:end]


@pytest.mark.parametrize("kind", KINDS)
def test_large_files_are_read_by_random_ranges(kind: str, samples: Samples) -> None:
    path, records = samples(kind, 3000)
    source = open_source(str(path))
    assert read_all(source) == records
    rng = random.Random(1)
    for _ in range(20):
        start = rng.randrange(3000)
        end = min(3000, start + rng.randrange(1200))
        assert read(source, source.shards[0].name, start, end) == records[start:end]


@pytest.mark.parametrize("kind", KINDS)
def test_ranges_read_from_several_threads_are_right(kind: str, samples: Samples) -> None:
    path, records = samples(kind, 2000)
    source = open_source(str(path))
    rng = random.Random(2)
    starts = [rng.randrange(1900) for _ in range(100)]

    def check(start: int) -> bool:
        return (
            read(source, source.shards[0].name, start, start + 100) == records[start : start + 100]
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(check, starts))


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_ranges_and_shards_are_refused(kind: str, samples: Samples) -> None:
    path, _ = samples(kind, 5)
    source = open_source(str(path))
    name = source.shards[0].name
    for start, end in ((-1, 2), (3, 2), (0, 6)):
        with pytest.raises(InvalidValue, match="holds 5 records"):
            source.read(name, start, end)
    with pytest.raises(UnknownName, match="Unknown shard"):
        source.read("nothing", 0, 1)


def test_chunks_are_bounded_in_bytes(tmp_path: Path) -> None:
    from .conftest import recordio, tfrecords

    records = [bytes(200_000)] * 20 + [bytes(3 << 20)]
    (tmp_path / "a.recordio").write_bytes(recordio(records, max_chunk_bytes=32 << 20))
    (tmp_path / "a.tfrecord").write_bytes(tfrecords(records))
    for path in tmp_path.iterdir():
        source = open_source(str(path))
        sizes = [len(chunk) for chunk in source.read(str(path), 0, 21)]
        assert sum(sizes) == 21
        assert max(sizes) <= 6


class Counted:
    """A stream of 100 records that counts how often it was started and how far it was read."""

    def __init__(self) -> None:
        self.starts = 0
        self.records = 0
        self.closed = 0

    def __call__(self):  # type: ignore[no-untyped-def]
        self.starts += 1
        try:
            for i in range(0, 100, 7):
                chunk = chunks.bytes_array([b"%d" % j for j in range(i, min(i + 7, 100))])
                self.records += len(chunk)
                yield chunk
        finally:
            self.closed += 1


def values(shard: SequentialShard, start: int, end: int) -> list[int]:
    return [int(v) for chunk in shard.read(start, end) for v in plain(chunk)]


def test_sequential_shard_is_read_once_when_leases_follow_each_other() -> None:
    stream = Counted()
    shard = SequentialShard("s", 100, stream, CursorPool())
    for start in range(0, 100, 10):
        assert values(shard, start, start + 10) == list(range(start, start + 10))
    assert (stream.starts, stream.records, stream.closed) == (1, 100, 1)


def test_sequential_shard_goes_on_after_a_range_that_was_given_up() -> None:
    stream = Counted()
    shard = SequentialShard("s", 100, stream, CursorPool())
    given_up = shard.read(0, 50)
    next(given_up)
    given_up.close()  # type: ignore[attr-defined]
    assert values(shard, 7, 20) == list(range(7, 20))
    assert stream.starts == 1


def test_sequential_shard_starts_anew_when_asked_to_go_back() -> None:
    stream = Counted()
    shard = SequentialShard("s", 100, stream, CursorPool())
    assert values(shard, 50, 60) == list(range(50, 60))
    assert values(shard, 0, 10) == list(range(10))
    assert values(shard, 60, 70) == list(range(60, 70))
    assert stream.starts == 2


def test_idle_cursors_are_bounded_for_all_shards_together() -> None:
    pool = CursorPool(max_idle=3)
    streams = [Counted() for _ in range(10)]
    for i, stream in enumerate(streams):
        values(SequentialShard(f"s{i}", 100, stream, pool), 0, 5)
    assert [stream.closed for stream in streams] == [1] * 7 + [0] * 3


def test_interleaved_leases_of_a_compressed_file_are_right(tmp_path: Path) -> None:
    from .conftest import random_records, tfrecords

    records = random_records(500)
    path = tmp_path / "a.tfrecord.gz"
    path.write_bytes(gzip.compress(tfrecords(records)))
    source = open_source(str(path))
    ahead = source.read(str(path), 50, 100)
    assert read(source, str(path), 0, 50) == records[:50]
    assert [r for chunk in ahead for r in chunk] == records[50:100]
    assert read(source, str(path), 100, 500) == records[100:]
