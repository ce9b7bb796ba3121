"""What the workers of a run printed: the end of a file, with search."""

from __future__ import annotations

import re
from typing import Any

from elasticdl.errors import NotFound, nearest
from elasticdl.runtime.dashboard.files import Entry, entries, read_bytes
from elasticdl.runtime.dashboard.runs import Run

__all__ = ["log_names", "log_view"]

DIRECTORY = "logs"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\.log")
MOST_BYTES = 4 << 20
MOST_LINES = 10_000
LONGEST = 5000
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def log_names(run: Run) -> dict[str, Entry]:
    """The logs of a run, by name; in the order of the workers' numbers."""
    if DIRECTORY not in run.found:
        return {}
    found = entries(run.path / DIRECTORY, run.root)
    named = {n: one for n, one in found.items() if not one.is_directory and _NAME.fullmatch(n)}
    return dict(sorted(named.items(), key=lambda one: _in_order(one[0])))


def log_view(run: Run, name: str, *, tail: int = 500, search: str = "") -> dict[str, Any]:
    """The last lines of a log, or the last of those with the searched words.

    Line numbers count from the file's begin; in a file that is cut they count from the part that was read.

    Raises:
      NotFound: the run has no such log.
    """
    known = log_names(run)
    if name not in known:
        raise NotFound(f"The run {run.name} has no log {name!r}. {nearest(name, known)}".rstrip())
    size = known[name].bytes
    start = max(0, size - MOST_BYTES)
    data = read_bytes(run.path / DIRECTORY / name, run.root, start, size)
    text = data.decode("utf-8", "replace")
    lines = list(enumerate(_clean(line) for line in text.splitlines()))
    if start and lines:
        lines = lines[1:]  # half of one
    needle = search.casefold()
    fitting = [(n, line) for n, line in lines if needle in line.casefold()]
    shown = fitting[-min(max(tail, 1), MOST_LINES) :]
    return {
        "lines": [{"number": n + 1, "text": line} for n, line in shown],
        "bytes": size,
        "is_cut": bool(start) or len(shown) < len(fitting),
    }


def _clean(line: str) -> str:
    line = _COLOURS.sub("", line)
    return line if len(line) <= LONGEST else line[:LONGEST] + " ..."


def _in_order(name: str) -> tuple[str, int, str]:
    stem, _, digits = name.removesuffix(".log").rpartition("-")
    return (stem, int(digits), name) if digits.isdecimal() else (name, -1, name)
