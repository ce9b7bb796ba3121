"""The TAB key."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Run


def completions(run: Run, words: str) -> list[str]:
    """What bash is told for a line; the last word is the one being completed."""
    done = run(
        _ELASTICDL_COMPLETE="bash_complete",
        COMP_WORDS=words,
        COMP_CWORD=str(len(words.split(" ")) - 1),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_command_is_completed_when_begun(run: Run) -> None:
    assert completions(run, "elasticdl tr") == ["plain,train"]


def test_flags_are_completed_without_their_aliases(run: Run) -> None:
    assert completions(run, "elasticdl train --num_e") == ["plain,--num_epochs"]
    assert completions(run, "elasticdl train --para") == []


def test_choices_are_completed_after_their_flag(run: Run) -> None:
    assert completions(run, "elasticdl train --log_level D") == ["plain,DEBUG"]
    assert completions(run, "elasticdl train --debug f") == ["plain,false"]


def test_files_are_completed_after_a_path_flag(run: Run) -> None:
    assert completions(run, "elasticdl train --training_data x") == ["file,x"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_says_how_to_install_it(run: Run, shell: str) -> None:
    done = run("completion", shell)
    assert done.returncode == 0
    assert f"elasticdl completion {shell}" in done.stdout.splitlines()[1]
    assert "_ELASTICDL_COMPLETE" in done.stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_the_script_completes_in_a_real_bash() -> None:
    script = """
        eval "$(elasticdl completion bash)"
        COMP_WORDS=(elasticdl tr) COMP_CWORD=1
        _elasticdl_completion elasticdl
        echo "${COMPREPLY[@]}"
    """
    binaries = Path(sys.executable).parent
    done = subprocess.run(
        ["bash", "-c", script],
        env={"PATH": f"{binaries}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.strip() == "train", done.stderr
