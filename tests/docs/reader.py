"""A reader who does what a page says, from its first block to its last, in one directory."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import re
import runpy
import shlex
import signal
import subprocess
import tomllib
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from elasticdl.cli.main import main
from elasticdl.sql.parse import parse
from elasticdl.sql.statements import Plain
from processes import run_python

from .blocks import ROOT, Block

_AUTHOR = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "A Reader"), ("EMAIL", "reader@example.com"))
}
"""Readers have told git who they are; the machine of a test may not."""
_NUMBER = re.compile(r"\d[\d,.:]*(?:e[-+]\d+)?")


class Screen(io.StringIO):
    """What is printed; it can press Ctrl-C when it sees a word."""

    def __init__(self, interrupt_at: str = "") -> None:
        super().__init__()
        self._interrupt_at = interrupt_at

    def write(self, text: str) -> int:
        if self._interrupt_at and self._interrupt_at in text:
            self._interrupt_at = ""
            signal.raise_signal(signal.SIGINT)
        return super().write(text)


class Reader:
    """Follows one page. What a block printed is what the `text` block after it must show."""

    def __init__(self) -> None:
        self._printed = ""
        self._names: dict[str, Any] = {"__name__": "__main__"}
        self._rules: dict[str, Callable[[Block], None]] = {
            "bash": self._commands,
            "python": self._python,
            "json": self._json,
            "yaml": self._yaml,
            "sql": self._sql,
            "text": self._shown,
            "": lambda block: None,  # a drawing
        }

    def follow(self, block: Block) -> None:
        assert block.language in self._rules, f"{block}: no rule for ```{block.language}"
        assert block.hint in ("", "fails", "interrupted", "typed"), f"{block}: no rule for a hint"
        self._rules[block.language](block)

    def _commands(self, block: Block) -> None:
        if block.hint == "typed":
            self._printed = _in_terminal(block)
            return
        expected = {"fails": block.value, "interrupted": "130"}.get(block.hint, "0")
        commands = block.text.replace("\\\n", " ").replace("$PWD", str(Path.cwd())).splitlines()
        screen = Screen(block.value if block.hint == "interrupted" else "")
        with redirect_stdout(screen), redirect_stderr(screen):
            codes = [_run(words) for c in commands if (words := shlex.split(c, comments=True))]
        self._printed = screen.getvalue()
        *before, last = codes
        assert not any(before), f"{block}: {self._printed}"
        assert last == int(expected), f"{block}: exit code {last}\n{self._printed}"

    def _python(self, block: Block) -> None:
        if block.file:
            _write(block)
            compile(block.text, block.file, "exec")
            return
        screen = Screen()
        code = compile("\n" * block.line + block.text, str(ROOT / block.page), "exec")
        with redirect_stdout(screen), redirect_stderr(screen):
            exec(code, self._names)  # noqa: S102
        self._printed = screen.getvalue()

    def _yaml(self, block: Block) -> None:
        """A file of the page's, which a later command reads."""
        assert block.file and yaml.safe_load(block.text), f"{block}: not a file"
        _write(block)

    def _sql(self, block: Block) -> None:
        """A statement of ours, which can be read."""
        (statement,) = parse(block.text)
        assert not isinstance(statement, Plain), f"{block}: only a database's"

    def _json(self, block: Block) -> None:
        """One JSON value, or one a line. What an editor would start is started."""
        try:
            value = json.loads(block.text)
        except json.JSONDecodeError:
            value = [json.loads(line) for line in block.text.splitlines()]
        if isinstance(value, dict) and "configurations" in value:
            for configuration in launched(value):
                assert _run(configuration) == 0, f"{block}: {configuration}"

    def _shown(self, block: Block) -> None:
        """Each line was printed, whatever its numbers; `...` stands for anything."""
        printed = _plain(self._printed)
        for line in block.text.splitlines():
            for part in _plain(line).split("..."):
                assert part.strip() in printed, f"{block}: {part!r} is not in\n{printed}"


def _write(block: Block) -> None:
    assert block.file is not None
    path = Path(block.file)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block.text, encoding="utf-8")


def _plain(text: str) -> str:
    """Without numbers, directories and the width of columns, which differ from run to run."""
    text = text.replace(f"{Path.cwd()}/", "")
    return re.sub(r"[ \t]+", " ", _NUMBER.sub("#", text))


def _run(words: list[str]) -> int:
    """One command, in this process where that is the same."""
    match words:
        case ["elasticdl", *args] | ["python", "-m", "elasticdl.python.elasticdl.client", *args]:
            return main(args)
        case ["python", script] if script.endswith(".py"):
            runpy.run_path(script, run_name="__main__")
            return 0
        case ["cd", directory]:
            os.chdir(directory)
            return 0
        case ["make", target]:
            return 0 if f"\n{target}:" in (ROOT / "Makefile").read_text() else 1
        case ["pip", "install", "-e", "."]:
            return 0 if (ROOT / "pyproject.toml").exists() else 1
        case ["pip", "install", "-e", target] if target.startswith(".["):
            project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
            return 0 if target[2:-1] in project["optional-dependencies"] else 1
        case ["pip", "install", package]:
            return 0 if importlib.util.find_spec(package) else 1
        case ["tensorboard", option] if option.startswith("--logdir="):
            return 0 if list(Path(option.removeprefix("--logdir=")).rglob("*tfevents*")) else 1
        case ["mlflow", "ui", "--backend-store-uri", address]:
            return 0 if Path(address.removeprefix("sqlite:///")).is_file() else 1
        case ["kubectl", *args]:  # for the cluster of a reader: here its files are looked for
            return 0 if all(Path(file).exists() for file in _applied(args)) else 1
        case ["docker", "login", _]:
            return 0
        case [("head" | "cat" | "ls" | "tail" | "grep" | "git"), *_]:
            environment = {**os.environ, **_AUTHOR}
            done = subprocess.run(
                words, capture_output=True, text=True, check=False, env=environment
            )
            print(done.stdout, done.stderr)
            return done.returncode
    raise AssertionError(f"No rule for the command {shlex.join(words)}")


def _applied(args: list[str]) -> list[str]:
    """The files that a kubectl command reads on this machine."""
    if args[0] == "cp":
        return [args[1]]
    named = [file for flag, file in pairwise(args) if flag in ("-f", "-k")]
    return [file for file in named if not re.match(r"https:|github\.com/", file)]


def launched(settings: dict[str, Any]) -> list[list[str]]:
    """The commands of a launch.json, for the working directory."""
    text = json.dumps(settings["configurations"]).replace("${workspaceFolder}", str(Path.cwd()))
    return [["python", "-m", made["module"], *made["args"]] for made in json.loads(text)]


def _in_terminal(block: Block) -> str:
    """What a session shows in which the page's words are typed; in a process of its own."""
    program, *args = shlex.split(block.text.replace("\\\n", " "))
    assert program == "elasticdl", f"{block}: no rule for typing to {program}"
    typed = "".join(f"{line.strip()}\n" for line in block.value.split(";"))
    done = run_python("-m", "elasticdl", *args, input=typed)
    return done.stdout + done.stderr
