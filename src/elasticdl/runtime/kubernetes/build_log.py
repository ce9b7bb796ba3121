"""The log of a build, line by line, and what to do about the step that failed."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable

__all__ = ["BuildLog"]

SHOWN = 20
"""The last lines of a failing step; what matters stands at the end."""

SATISFIED = "Requirement already satisfied"
"""pip says it a hundred times of a base that has everything."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
"""Docker paints what a step writes to its standard error."""
_STEP = re.compile(r"step (\d+/\d+)\s*: (?P<what>.*)", re.IGNORECASE)


class BuildLog:
    """Says the lines of a build as they come, and keeps those of the step that runs."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._rest = ""
        self._step = ""
        self._lines: list[str] = []

    def take(self, text: str) -> None:
        """A piece of the log, which may end anywhere in a line."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._line(_COLOUR.sub("", line).rstrip())

    @property
    def step(self) -> str:
        """The one that runs, shortened to stand in a line."""
        return textwrap.shorten(self._step or "the first step", 60, placeholder=" ...")

    def end(self) -> None:
        self.take("\n" if self._rest else "")

    def failure(self, error: str) -> str:
        """What to tell of a build that ended with an error."""
        self.end()
        lines = self._lines[-SHOWN:]
        shown = "".join(f"\n  {line}" for line in [*lines, error.strip()])
        where = f"the step {self._step!r} failed" if self._step else "it failed"
        return f"The image could not be built: {where}.{shown}\n{advice(self._step)}"

    def _line(self, line: str) -> None:
        if not line or line.startswith(SATISFIED):
            return
        if step := _STEP.match(line):
            self._step, self._lines = step["what"], []
        else:
            self._lines.append(line)
        self._say(line)


def advice(step: str) -> str:
    """What to do about a step of our Dockerfile that failed.

    >>> advice("FROM python:3.99-slim")
    'Check --image_base: the engine could not get it.'
    """
    if step.upper().startswith("FROM") or not step:
        return "Check --image_base: the engine could not get it."
    if "wget" in step:
        return "KubeRay asks pods with wget how they are. Give --image_base an image that has it."
    if "/model_zoo/requirements.txt" in step:
        return "Mend requirements.txt in the model zoo, or give --extra_pypi_index an index that has what it names."
    if "pip install" in step:
        return (
            "The versions are those that are installed here. Give --image_base an image with the same Python as "
            "here, or --extra_pypi_index an index that has them."
        )
    return "Look at the Dockerfile with --print_dockerfile."
