"""Rows in files: all of them, split by the seed, in flat memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from elasticdl.sql.rows import Rows
from elasticdl.sql.spool import Spool, read_spool, write_rows, write_split


def numbers(count: int, batch: int = 1000) -> Rows:
    table = pa.table({"x": np.arange(count)})
    return Rows(table.schema, table.to_batches(max_chunksize=batch))


def values(spool: Spool) -> list[int]:
    return [x for batch in read_spool(spool.path) for x in batch.column("x").to_pylist()]


def split(count: int, path: Path, seed: int = 1, fraction: float = 0.1, batch: int = 1000) -> list:
    seen: list[int] = []
    parts = write_split(
        numbers(count, batch),
        path / "training.arrow",
        path / "validation.arrow",
        fraction=fraction,
        seed=seed,
        each=lambda one: seen.append(one.num_rows),
    )
    assert sum(seen) == count
    return [values(part) for part in parts]


def test_rows_are_kept_in_their_order(tmp_path: Path) -> None:
    spool = write_rows(numbers(10_000), tmp_path / "rows.arrow")
    assert spool.num_rows == 10_000
    assert values(spool) == list(range(10_000))


def test_a_split_is_of_all_rows_and_of_the_seed(tmp_path: Path) -> None:
    training, validation = split(10_000, tmp_path)
    assert sorted(training + validation) == list(range(10_000))
    assert 800 < len(validation) < 1200
    assert split(10_000, tmp_path) == [training, validation]
    assert split(10_000, tmp_path, batch=77) == [training, validation]
    assert split(10_000, tmp_path, seed=2) != [training, validation]


def test_no_rows_are_set_aside_of_a_few(tmp_path: Path) -> None:
    training, validation = split(12, tmp_path, fraction=0.5)
    assert sorted(training) == list(range(12))
    assert validation == []


def test_no_fraction_sets_none_aside(tmp_path: Path) -> None:
    training, validation = split(100, tmp_path, fraction=0.0)
    assert (len(training), validation) == (100, [])


def test_no_rows_are_no_rows(tmp_path: Path) -> None:
    assert split(0, tmp_path) == [[], []]


def test_dictionaries_that_differ_from_batch_to_batch_are_kept(tmp_path: Path) -> None:
    batches = [
        pa.record_batch({"x": pa.array(words).dictionary_encode()})
        for words in (["a", "b"], ["c", None], ["b"])
    ]
    spool = write_rows(Rows(batches[0].schema, batches), tmp_path / "rows.arrow")
    assert values(spool) == ["a", "b", "c", None, "b"]


def test_rows_that_fail_on_the_way_close_what_they_come_from(tmp_path: Path) -> None:
    closed = []

    def failing():
        yield pa.record_batch({"x": [1]})
        raise ValueError("the connection is gone")

    rows = Rows(pa.schema({"x": pa.int64()}), failing(), lambda: closed.append(True))
    with pytest.raises(ValueError, match="gone"):
        write_rows(rows, tmp_path / "rows.arrow")
    assert closed
