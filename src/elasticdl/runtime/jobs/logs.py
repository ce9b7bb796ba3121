"""What a run has said: its events as lines, or what one of its workers printed. Followed until the run ends."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from upath import UPath

from elasticdl.artifacts.run_directory import RunDirectory
from elasticdl.errors import NotFound
from elasticdl.runtime.jobs.record import parsed
from elasticdl.storage import children, is_local, storage_errors
from elasticdl.tracking.lines import EventLines
from elasticdl.tracking.words import some

__all__ = ["log_lines", "poll_s"]

Wait = Callable[[float], None]


def log_lines(
    directory: RunDirectory,
    *,
    worker: str | None = None,
    tail: int | None = None,
    follow: bool = False,
    wait: Wait = time.sleep,
) -> Iterator[str]:
    """The lines that a run has told so far; with `follow` those too that it tells until it ends.

    Args:
      worker: one whose own output is wanted, `0` or `worker-0`.
      tail: only so many of the last lines that are there already.

    Raises:
      NotFound: the run has no such worker.
    """
    read: Callable[[list[str]], list[str]] = _Events() if worker is None else list
    file = directory.events if worker is None else _worker_file(directory, worker)
    growing = _Growing(file)
    runs = directory.holder is not None  # before it is read: what comes after its end is read too
    told = read(growing.new_lines())
    yield from told if tail is None else deque(told, maxlen=tail)
    while follow and runs:
        wait(poll_s(directory))
        runs = directory.holder is not None
        yield from read(growing.new_lines())


def poll_s(directory: RunDirectory) -> float:
    """How often to look at a run: what is at a remote address changes every ten seconds at most."""
    return 0.25 if is_local(directory.path) else 3.0


class _Events:
    """Lines of JSON to lines for people."""

    def __init__(self) -> None:
        self._lines = EventLines()

    def __call__(self, lines: list[str]) -> list[str]:
        said = (self._lines.line(event) for event in parsed(lines))
        return [line for line in said if line is not None]


class _Growing:
    """A file to which others append: each line once, when it is whole."""

    def __init__(self, file: UPath) -> None:
        self._file = file
        self._offset = 0

    def new_lines(self) -> list[str]:
        data = self._read()
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        return whole.decode("utf-8", "replace").splitlines()

    def _read(self) -> bytes:
        with storage_errors(self._file, doing="read"):
            try:
                if is_local(self._file):
                    return self._read_on()
                self._file.fs.invalidate_cache()
                return self._rest(bytes(self._file.read_bytes()))
            except FileNotFoundError:
                return b""

    def _read_on(self) -> bytes:
        with Path(str(self._file)).open("rb") as file:
            if file.seek(0, 2) < self._offset:
                self._offset = 0  # the run was begun anew
            file.seek(self._offset)
            return file.read()

    def _rest(self, data: bytes) -> bytes:
        if len(data) < self._offset:
            self._offset = 0
        return data[self._offset :]


def _worker_file(directory: RunDirectory, worker: str) -> UPath:
    name = f"worker-{worker}" if worker.isdigit() else worker
    logs = directory.path / "logs"
    with storage_errors(logs, doing="read"):
        found = [c.stem for c in children(logs) if re.fullmatch(r"worker-\d+\.log", c.name)]
    if name in found:
        return logs / f"{name}.log"
    if found:
        known = some(sorted(found, key=lambda one: int(one.rpartition("-")[2])))
        raise NotFound(
            f"There is no log of a worker {worker!r} in {directory.path}. Known: {known}."
        )
    why = (
        "a run in one process has none"
        if is_local(directory.path)
        else "workers keep theirs only in a directory on a disk; Ray's dashboard shows them"
    )
    raise NotFound(f"There are no logs of workers in {directory.path}: {why}.")
