"""What a start of the command line loads, and the names that it can be started by."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import elasticdl

from .conftest import Run

HEAVY = ["tensorflow", "keras", "numpy", "pyarrow", "pandas", "fsspec", "rich", "ray", "mlflow"]

LOOK = """
import json, sys
from elasticdl.cli.main import main
code = main(sys.argv[1:])
print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)
"""


def loaded_by(*args: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", LOOK, *args], capture_output=True, text=True, check=True, timeout=60
    )
    code, modules = json.loads(done.stderr)
    assert code == 0
    return list(modules)


@pytest.mark.parametrize(
    "args",
    [
        ["--help"],
        ["--version"],
        ["train", "--help"],
        ["evaluate", "--help"],
        ["run", "--help"],
        ["new", "--help"],
        ["schema", "--help"],
        ["sql", "--help"],
        ["sql", "serve", "--help"],
        ["sql", "export", "--help"],
        ["data", "prepare", "--help"],
        ["data", "inspect", "--help"],
        ["zoo", "list", "--help"],
        ["completion", "fish"],
    ],
)
def test_nothing_heavy_is_imported_when_help_is_asked(args: list[str]) -> None:
    assert set(HEAVY).isdisjoint(loaded_by(*args))


def test_no_command_is_imported_when_only_the_list_is_asked() -> None:
    commands = {"train", "evaluate", "data", "zoo", "completion"}
    assert {f"elasticdl.cli.{name}" for name in commands}.isdisjoint(loaded_by("--help"))


def test_nothing_is_imported_with_the_package_itself() -> None:
    look = "import sys, elasticdl; print(*[m for m in sys.modules if m.startswith('elasticdl')])"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["elasticdl"]


def test_version_is_that_of_the_package(run: Run) -> None:
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"elasticdl {elasticdl.__version__}\n")


def test_a_command_runs_when_its_streams_are_closed(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    done = subprocess.run(
        [sys.executable, "-m", "elasticdl", "data", "inspect", str(tmp_path / "a.csv")],
        preexec_fn=lambda: os.closerange(1, 3),
        timeout=60,
    )
    assert done.returncode == 0


def test_a_wrong_command_ends_with_2_when_its_streams_are_closed() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "elasticdl", "nope"],
        preexec_fn=lambda: os.closerange(1, 3),
        timeout=60,
    )
    assert done.returncode == 2


@pytest.mark.parametrize(
    "start",
    [
        [str(Path(sys.executable).parent / "elasticdl")],
        [sys.executable, "-m", "elasticdl"],
        [sys.executable, "-m", "elasticdl.python.elasticdl.client"],
    ],
)
def test_every_way_to_start_is_the_same_command(start: list[str]) -> None:
    done = subprocess.run([*start, "train", "--nope"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("Error: Unknown option '--nope' of 'elasticdl train'.")
