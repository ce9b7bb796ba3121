"""The files of a zoo that a model needs, found without running any."""

from __future__ import annotations

from pathlib import Path

import pytest

from elasticdl.contract.snapshot import MAX_DATA_BYTES, take_snapshot


def write(root: Path, name: str, text: str = "") -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("a/b/__init__.py", "a/b/c.py", "a/d.py", "e.py", "unused.py", "a/unused.py"):
        write(tmp_path / "zoo", name)
    return tmp_path / "zoo"


def names(root: Path, source: str, file: str = "a/model.py") -> set[str]:
    """What is taken beside the file itself, when it says this."""
    write(root, file, source)
    taken = set(take_snapshot(root, [file]).files)
    assert {file, "requirements.txt"} <= taken
    return taken - {file, "requirements.txt"}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import e", {"e.py"}),
        ("def f():\n    from a.b import c", {"a/b/__init__.py", "a/b/c.py"}),
        ("def f():\n    import a.b.c as x", {"a/b/__init__.py", "a/b/c.py"}),
        ("from .b.c import x", {"a/b/__init__.py", "a/b/c.py"}),
        ("from . import d", {"a/d.py"}),
        ("from .. import e", {"e.py"}),
        ("import importlib\nx = lambda: importlib.import_module('e')", {"e.py"}),
        ("import_module('.b.c', __package__)", {"a/b/__init__.py", "a/b/c.py"}),
        ("import_module('..e', package=__package__)", {"e.py"}),
        ("import_module(some_name)", set()),
        ("import os, keras", set()),
        ("from a import nothing", set()),
    ],
)
def test_imports_are_followed_wherever_they_stand(
    root: Path, source: str, expected: set[str]
) -> None:
    assert names(root, source) == expected


def test_files_that_are_imported_are_followed_too(root: Path) -> None:
    write(root, "e.py", "from a.b import c")
    write(root, "a/b/c.py", "WORDS = open('words.txt')")
    write(root, "a/b/words.txt", "x")
    assert names(root, "import e") == {
        "e.py",
        "a/b/__init__.py",
        "a/b/c.py",
        "a/b/words.txt",
    }


@pytest.mark.parametrize(
    "source",
    [
        "open('words/en.txt')",
        "open('a/words/en.txt')",
        "import os\nopen(os.path.join(os.path.dirname(__file__), 'words', 'en.txt'))",
        "from pathlib import Path\nx = Path(__file__).parent / 'words' / 'en.txt'",
        "WORDS = 'words/en.txt'",
        "FILES = {'en': './words/en.txt'}",
    ],
)
def test_small_files_that_the_source_names_are_taken(root: Path, source: str) -> None:
    write(root, "a/words/en.txt", "x")
    assert names(root, source) == {"a/words/en.txt"}


def test_large_files_are_left_out_with_a_remark(root: Path) -> None:
    write(root, "big.bin", "x" * (MAX_DATA_BYTES + 1))
    write(root, "m.py", "open('big.bin')")
    snapshot = take_snapshot(root, ["m.py"])
    assert "big.bin" not in snapshot.files
    assert "m.py names the file big.bin, which is not in the trained model" in snapshot.remarks[0]


@pytest.mark.parametrize("name", [".env", ".git/config", "../secret.txt", "link.txt"])
def test_hidden_files_and_files_elsewhere_are_never_taken(root: Path, name: str) -> None:
    write(root, ".env", "SECRET=1")
    write(root, ".git/config", "SECRET=1")
    write(root, "../secret.txt", "SECRET=1")
    (root / "link.txt").symlink_to(root.parent / "secret.txt")
    absolute = str((root / name).resolve())
    assert names(root, f"open({name!r}), open({absolute!r})", "m.py") == set()


def test_requirements_are_the_zoos_own_with_what_they_include(root: Path) -> None:
    write(root, "requirements.txt", "-r more/base.txt\nkeras>=3\n-r https://example.org/x.txt\n")
    write(root, "more/base.txt", "-c limits.txt\nnumpy\n")
    write(root, "more/limits.txt", "numpy<9\n")
    assert names(root, "import pandas") == {"more/base.txt", "more/limits.txt"}


def test_requirements_are_made_of_what_is_imported(root: Path) -> None:
    write(root, "yaml.py")
    source = "import os, sys, numpy.linalg, elasticdl, yaml\ndef f():\n    from keras import ops"
    write(root, "m.py", f"{source}\nimport google.protobuf, not_installed_anywhere")
    files = take_snapshot(root, ["m.py"]).files
    assert files["requirements.txt"] == b"keras\nnumpy\n"


def test_source_that_python_cannot_read_is_taken_as_it_is(root: Path) -> None:
    write(root, "broken.py", "def (")
    write(root, "e.py", "PATTERN = '\\d'")  # Python warns of it
    assert names(root, "import e\nT = 'broken.py'", "m.py") == {"broken.py", "e.py"}


def test_what_was_imported_is_taken_through_a_link(root: Path) -> None:
    write(root, "../shared/m.py", "import e")
    (root / "linked").symlink_to(root.parent / "shared")
    assert set(take_snapshot(root, ["linked/m.py"]).files) >= {"linked/m.py", "e.py"}


def test_file_that_is_gone_is_told(root: Path) -> None:
    snapshot = take_snapshot(root, ["gone.py"])
    assert snapshot.remarks == ["gone.py is not in the trained model: No such file or directory."]


def test_strings_that_no_file_can_be_called_are_passed_over(root: Path) -> None:
    words = "模型" * 100
    assert names(root, f"TEXT = {words!r}, 'a' * 9, '\\0', '~', '/', '*'") == set()
