"""Which files of a zoo reach the workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from elasticdl.contract.snapshot import MAX_DATA_BYTES
from elasticdl.errors import InvalidValue
from elasticdl.runtime.elastic import zoo_files
from elasticdl.runtime.elastic.zoo_files import zoo_environment


def write(root: Path, *names: str, content: bytes = b"x = 1\n") -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)


def test_source_and_small_files_are_taken_and_nothing_else(tmp_path: Path) -> None:
    zoo = tmp_path / "zoo"
    wanted = [
        "a.py",
        "b/__init__.py",
        "b/model.py",
        "b/words.txt",
        "requirements.txt",
        "secrets.py",
    ]
    write(zoo, *wanted)
    write(zoo, ".git/config", ".env", "b/__pycache__/a.pyc", "elasticdl_runs/j-1/job.json")
    write(zoo, "venv/pyvenv.cfg", "venv/lib/x.py", "run/job.json", "run/events.jsonl")
    write(zoo, "server.pem", "id_rsa", "my_credentials.json")
    write(zoo, "b/large.csv", content=b"0" * (MAX_DATA_BYTES + 1))
    write(zoo, *(f"pictures/{n}.png" for n in range(150)), "pictures/reader.py")
    write(tmp_path, "outside.txt")
    (zoo / "link.txt").symlink_to(tmp_path / "outside.txt")
    (zoo / "gone.txt").symlink_to(tmp_path / "gone.txt")
    assert zoo_files.zoo_files(zoo) == sorted([*wanted, "pictures/reader.py"])


def test_the_environment_has_a_copy_that_later_edits_do_not_change(tmp_path: Path) -> None:
    write(tmp_path, "zoo/b/model.py", content=b"version = 1\n")
    with zoo_environment(tmp_path / "zoo") as given:
        write(tmp_path, "zoo/b/model.py", content=b"version = 2\n")
        copy = Path(given["working_dir"])
        assert (copy / "b" / "model.py").read_bytes() == b"version = 1\n"
        assert given["env_vars"]["KERAS_BACKEND"] == "tensorflow"
    assert not copy.exists()


def test_no_directory_is_given_when_there_is_no_zoo() -> None:
    with zoo_environment(None) as given:
        assert set(given) == {"env_vars"}


def test_a_zoo_is_refused_when_it_is_far_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zoo_files, "MAX_BYTES", 1 << 20)
    write(tmp_path, "a.txt", "b.txt", content=b"0" * (600 << 10))
    with pytest.raises(InvalidValue, match="Give --model_zoo a directory with model files only"):
        zoo_files.zoo_files(tmp_path)


def test_an_error_of_the_job_stays_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"^theirs$"), zoo_environment(tmp_path):
        raise FileNotFoundError("theirs")
