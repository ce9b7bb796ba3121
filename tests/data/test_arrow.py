"""Arrow IPC files as data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from elasticdl.data.registry import open_source
from elasticdl.errors import CorruptData, DataError


def write(path: Path, table: pa.Table, block: int = 100) -> str:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        for batch in table.to_batches(max_chunksize=block):
            writer.write_batch(batch)
    return str(path)


@pytest.fixture
def numbers(tmp_path: Path) -> str:
    table = pa.table({"x": np.arange(1000), "word": [f"w{i}" for i in range(1000)]})
    return write(tmp_path / "numbers.arrow", table)


def read(source: Any, start: int, end: int) -> list[int]:
    (shard,) = source.shards
    chunks = list(source.read(shard.name, start, end))
    return [int(x) for chunk in chunks for x in chunk["x"]]


@pytest.mark.parametrize(("start", "end"), [(0, 1000), (0, 1), (99, 101), (250, 777), (999, 1000)])
def test_a_range_is_read_in_order(numbers: str, start: int, end: int) -> None:
    assert read(open_source(numbers), start, end) == list(range(start, end))


def test_strings_are_bytes_and_columns_can_be_chosen(numbers: str) -> None:
    source = open_source(numbers, {"columns": ["word"]})
    (chunk,) = source.read(source.shards[0].name, 5, 7)
    assert list(chunk) == ["word"]
    assert list(chunk["word"]) == [b"w5", b"w6"]


def test_a_seed_takes_the_blocks_in_another_order_that_covers_all(numbers: str) -> None:
    one = open_source(numbers, {"order_seed": 1})
    whole = read(one, 0, 1000)
    assert sorted(whole) == list(range(1000))
    assert whole != sorted(whole)
    assert read(open_source(numbers, {"order_seed": 1}), 0, 1000) == whole
    assert read(one, 150, 420) == whole[150:420]


def test_a_table_says_what_values_are(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([1, None, 3]), "s": pa.array(["a", None, "b"])})
    path = write(tmp_path / "t.arrow", table)
    columns = [{"name": "x", "dtype": "float32"}, {"name": "s", "dtype": "string"}]
    source = open_source(path, {"table": columns})
    (chunk,) = source.read(source.shards[0].name, 0, 3)
    np.testing.assert_array_equal(chunk["x"], np.array([1, np.nan, 3], np.float32))
    assert list(chunk["s"]) == [b"a", b"", b"b"]


def test_a_missing_integer_without_a_table_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "t.arrow", pa.table({"x": pa.array([1, None])}))
    source = open_source(path)
    with pytest.raises(DataError, match="missing values"):
        list(source.read(source.shards[0].name, 0, 2))


def test_a_file_that_was_cut_off_is_refused(numbers: str, tmp_path: Path) -> None:
    cut = tmp_path / "cut.arrow"
    cut.write_bytes(Path(numbers).read_bytes()[:5000])
    with pytest.raises(CorruptData, match="damaged or no Arrow IPC file"):
        open_source(str(cut))


def test_files_of_other_columns_are_refused_together(numbers: str, tmp_path: Path) -> None:
    other = write(tmp_path / "other.arrow", pa.table({"y": [1.0]}))
    with pytest.raises(DataError, match="differ in their columns"):
        open_source(f"{numbers},{other}")
