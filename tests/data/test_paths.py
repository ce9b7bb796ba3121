"""From the text that names data to files."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import fsspec
import pytest

from elasticdl.data.paths import absolute, expand
from elasticdl.data.registry import open_source
from elasticdl.errors import DataError, MissingPackage, NotFound, UnknownName
from elasticdl.storage import place

from .conftest import random_records, read_all, recordio


def names(text: str, **options: bool) -> list[str]:
    return [os.path.basename(file.url) for file in expand(text, **options)]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("b.csv", "a.csv", "c,d.csv", "x[1].csv", ".hidden", "_SUCCESS", "_t.csv"):
        (tmp_path / name).write_text(name)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "deep.csv").write_text("deep")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("no data")
    return tmp_path


def test_file_directory_and_glob_are_expanded(tree: Path) -> None:
    assert names(f"{tree}/a.csv") == ["a.csv"]
    assert names(f"{tree}") == ["_t.csv", "a.csv", "b.csv", "c,d.csv", "x[1].csv"]
    assert names(f"{tree}/") == names(f"{tree}")
    assert names(f"{tree}/[ab].csv") == ["a.csv", "b.csv"]
    assert names(f"{tree}/*/*.csv") == ["deep.csv"]
    assert names(f"{tree}/_S*") == ["_SUCCESS"]
    assert "_SUCCESS" not in names(f"{tree}/*")


def test_directory_is_walked_only_when_asked(tree: Path) -> None:
    assert "deep.csv" in names(str(tree), recursive=True)
    assert "config" not in names(str(tree), recursive=True)


def test_commas_separate_unless_they_belong_to_a_name(tree: Path) -> None:
    assert names(f"{tree}/b.csv,{tree}/a.csv") == ["b.csv", "a.csv"]
    assert names(f"{tree}/b.csv, {tree}/a.csv,") == ["b.csv", "a.csv"]
    assert names(f"{tree}/c,d.csv") == ["c,d.csv"]
    assert names(f"{tree}/a.csv,{tree}/c,d.csv,{tree}/b.csv") == ["a.csv", "c,d.csv", "b.csv"]
    assert names(f"{tree}/{{a,b}}.csv") == ["a.csv", "b.csv"]
    assert names(f"{tree}/{{b,s*/deep}}.csv") == ["b.csv", "deep.csv"]


def test_name_that_looks_like_a_glob_is_taken_as_it_is_when_it_exists(tree: Path) -> None:
    assert names(f"{tree}/x[1].csv") == ["x[1].csv"]


def test_file_named_twice_is_taken_once(tree: Path) -> None:
    assert names(f"{tree}/a.csv,{tree}/*.csv").count("a.csv") == 1
    paths = [str(tree / "a.csv"), str(tree / "a.csv")]
    (tree / "a.csv").write_text("x\n1\n")
    assert len(open_source(paths).shards) == 1


def test_links_to_files_are_followed(tree: Path) -> None:
    (tree / "sub" / "link.csv").symlink_to(tree / "a.csv")
    (tree / "sub" / "dangling.csv").symlink_to(tree / "nothing")
    assert names(f"{tree}/sub") == ["deep.csv", "link.csv"]
    assert expand(f"{tree}/sub/link.csv")[0].size == len("a.csv")


def test_missing_path_is_named_with_the_nearest(tree: Path) -> None:
    (tree / "training.csv").touch()
    with pytest.raises(NotFound, match=rf"trainin\.csv'\. Did you mean '{tree}/training\.csv'\?$"):
        expand(f"{tree}/trainin.csv")
    (tree / "perm.csv").touch()
    with pytest.raises(NotFound, match=r"no .*nope\.csv'\. The directory '.*' holds .*a\.csv"):
        expand(f"{tree}/nope.csv")
    (tree / "perm.tsv").touch()
    with pytest.raises(NotFound, match=r"Did you mean '.*/perm\.csv'"):
        expand(f"{tree}/perm.cvs")
    (tree / "bare").mkdir()
    with pytest.raises(NotFound, match=r"The directory '.*bare' is empty\.$"):
        expand(f"{tree}/bare/a.csv")
    with pytest.raises(NotFound, match="nor its directory"):
        expand(f"{tree}/no/where.csv")
    with pytest.raises(NotFound, match="No file matches"):
        expand(f"{tree}/*.parquet")
    with pytest.raises(FileNotFoundError):
        expand(f"{tree}/a.csv,{tree}/nothing")
    with pytest.raises(NotFound, match="is empty"):
        expand(" , ")


def test_directory_without_files_is_refused(tree: Path) -> None:
    (tree / "empty").mkdir()
    with pytest.raises(DataError, match="holds no files"):
        expand(f"{tree}/empty")
    (tree / "empty" / "more").mkdir()
    with pytest.raises(DataError, match=r"empty/\*/\*"):
        expand(f"{tree}/empty")


@pytest.mark.parametrize(("url", "package"), [("oss://b/x", "ossfs"), ("abfs://b/x", "adlfs")])
def test_missing_driver_gives_its_pip_line(url: str, package: str) -> None:
    if importlib.util.find_spec(package):
        pytest.skip(f"{package} is installed")
    with pytest.raises(MissingPackage, match=f"pip install {package}"):
        expand(url)


def test_unknown_kind_of_address_is_refused() -> None:
    with pytest.raises(UnknownName, match="Unknown kind of address 'gss'"):
        expand("gss://bucket/x")


def test_files_of_another_file_system_are_read() -> None:
    fs = fsspec.filesystem("memory")
    records = random_records(30)
    fs.pipe_file("/bucket/train/a.recordio", recordio(records[:10]))
    fs.pipe_file("/bucket/train/b.recordio", recordio(records[10:]))
    for path in ("memory://bucket/train", "memory://bucket/train/*.recordio"):
        source = open_source(path)
        assert source.shards[0].name == "memory:///bucket/train/a.recordio"
        assert read_all(source) == records
    fs.rm("/bucket", recursive=True)


def test_a_directory_without_some_of_its_shards_is_refused(tmp_path: Path) -> None:
    for number in (0, 1, 3):
        (tmp_path / f"data-{number:05}-of-00004.recordio").write_bytes(b"x")
    with pytest.raises(DataError, match=r"3 of the 4 shards data-\*: number 2 is missing"):
        expand(str(tmp_path))
    assert len(expand(f"{tmp_path}/data-*")) == 3
    (tmp_path / "data-00002-of-00004.recordio").write_bytes(b"x")
    assert len(expand(str(tmp_path))) == 4


def test_paths_and_addresses_stand_side_by_side(tmp_path: Path) -> None:
    here = tmp_path / "a.csv"
    here.write_text("x\n")
    place("memory://beside/b.csv").write_bytes(b"x\n")
    for names in (f"{here},memory://beside/b.csv", f"memory://beside/b.csv,{here}"):
        assert {file.url for file in expand(names)} == {str(here), "memory:///beside/b.csv"}
        assert absolute(names) == names
