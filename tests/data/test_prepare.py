"""Raw files to shards: order, both signatures, workers, and failures that leave nothing."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import fsspec
import pytest

from elasticdl.data.prepare import prepare
from elasticdl.data.registry import open_source
from elasticdl.errors import ContractError, DataError, InvalidValue, OutputExists, RunError

from . import prepare_functions as functions
from .conftest import read_all


def load(name: str):  # type: ignore[no-untyped-def]
    return partial(functions.get, name)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    directory = tmp_path / "raw"
    for i in range(40):
        path = directory / str(i % 3) / f"{i:03}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x" * i)
    return directory


def ordered(raw: Path) -> list[str]:
    return sorted(str(path) for path in raw.rglob("*.txt"))


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip"])
def test_shards_hold_the_records_in_the_order_of_the_files(
    compression: str, raw: Path, tmp_path: Path
) -> None:
    out = str(tmp_path / "out")
    seen: list[tuple[int, int]] = []
    done = prepare(
        str(raw),
        out,
        load("several"),
        records_per_shard=16,
        num_workers=1,
        compression=compression,
        on_progress=lambda *progress: seen.append(progress),
    )
    expected = [record for path in ordered(raw) for record in functions.several(path)]
    source = open_source(out)
    assert read_all(source) == expected
    assert (done.num_files, done.num_records) == (40, len(expected))
    assert [shard.num_records for shard in source.shards] == [16] * 5
    assert seen[-1] == (40, 40)
    total = len(done.shards)
    assert sorted(os.listdir(out)) == [f"data-{i:05}-of-{total:05}.recordio" for i in range(total)]
    assert list(done.shards) == [f"{out}/{name}" for name in sorted(os.listdir(out))]


def test_shards_are_the_same_with_several_workers(raw: Path, tmp_path: Path) -> None:
    for workers in (1, 2):
        prepare(
            str(raw),
            str(tmp_path / str(workers)),
            load("several"),
            records_per_shard=10,
            num_workers=workers,
        )
    one, two = (sorted((tmp_path / name).iterdir()) for name in "12")
    assert [path.name for path in one] == [path.name for path in two]
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]


def test_older_signature_is_given_the_open_file(raw: Path, tmp_path: Path) -> None:
    prepare(f"{raw}/0/000.txt,{raw}/1/004.txt", str(tmp_path / "o"), load("older"), num_workers=1)
    assert read_all(open_source(str(tmp_path / "o"))) == [b"000.txt:", b"004.txt:xxxx"]


def test_failure_in_this_process_is_the_users_own_and_leaves_nothing(
    raw: Path, tmp_path: Path
) -> None:
    with pytest.raises(functions.OwnError, match="cannot read this") as caught:
        prepare(str(raw), str(tmp_path / "out"), load("failing"), num_workers=1)
    assert any("003.txt" in note for note in caught.value.__notes__)
    assert not (tmp_path / "out").exists()


def test_failure_in_a_worker_shows_its_traceback_and_file_and_leaves_nothing(
    raw: Path, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(RunError, match=r"while .*3\.txt was prepared") as caught:
        prepare(
            str(raw), str(tmp_path / "out"), load("failing"), records_per_shard=1, num_workers=2
        )
    assert str(caught.value).count("File ") == str(caught.value).count("prepare_functions.py") == 1
    text = str(caught.value)
    assert "OwnError: cannot read this" in text
    assert text.count("was prepared") == 1
    assert "/elasticdl/data/" not in text
    assert "concurrent" not in text
    assert list((tmp_path / "out").iterdir()) == []


def test_function_that_cannot_be_loaded_fails_with_its_own_error(raw: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="missing"):
        prepare(str(raw), str(tmp_path / "out"), load("missing"), num_workers=2)
    assert not (tmp_path / "out").exists()


def test_exit_in_a_worker_is_told_with_its_line(raw: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="SystemExit: 3") as caught:
        prepare(str(raw), str(tmp_path / "out"), load("leaving"), num_workers=2)
    assert "sys.exit(3)" in str(caught.value)


@pytest.mark.parametrize("num_workers", [1, 2])
@pytest.mark.parametrize(
    ("name", "words"),
    [("nothing", "returned None"), ("texts", "yielded a str"), ("three", "takes 3 arguments")],
)
def test_function_that_breaks_the_contract_is_told(
    name: str, words: str, num_workers: int, raw: Path, tmp_path: Path
) -> None:
    with pytest.raises(ContractError, match=words):
        prepare(str(raw), str(tmp_path / "out"), load(name), num_workers=num_workers)
    assert not (tmp_path / "out").exists()


def test_no_records_are_refused(raw: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No records came of the 40 files"):
        prepare(str(raw), str(tmp_path / "out"), load("no_records"), num_workers=1)


def test_directory_with_shards_is_not_written_to(raw: Path, tmp_path: Path) -> None:
    prepare(str(raw), str(tmp_path / "out"), load("one"), num_workers=1)
    before = sorted(os.listdir(tmp_path / "out"))
    with pytest.raises(OutputExists, match="already holds shards"):
        prepare(str(raw), str(tmp_path / "out"), load("one"), num_workers=1)
    assert sorted(os.listdir(tmp_path / "out")) == before


@pytest.mark.parametrize("name", ["records_per_shard", "num_workers"])
def test_numbers_below_one_are_refused(name: str, raw: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=f"Invalid {name} 0"):
        prepare(str(raw), str(tmp_path / "out"), load("one"), **{name: 0})  # type: ignore[arg-type]


def test_unknown_compression_is_refused(raw: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="compression 'zip'"):
        prepare(str(raw), str(tmp_path / "out"), load("one"), num_workers=1, compression="zip")


def test_shards_go_to_another_file_system(raw: Path) -> None:
    done = prepare(str(raw), "memory://prepared/out", load("one"), num_workers=1)
    assert read_all(open_source("memory://prepared/out")) == [
        b"x" * int(Path(p).stem) for p in ordered(raw)
    ]
    assert done.shards == ("memory://prepared/out/data-00000-of-00001.recordio",)
    fsspec.filesystem("memory").rm("/prepared", recursive=True)
