"""The runs below some directories."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence

from upath import UPath

from elasticdl.errors import ElasticDLError, NotFound
from elasticdl.runtime.dashboard.files import entries
from elasticdl.runtime.dashboard.run import (
    EVENTS,
    JOB,
    LOCAL_S,
    REMOTE_S,
    UNREADABLE,
    Clock,
    Run,
    Seen,
    address_of,
    id_of,
)
from elasticdl.storage import is_local, place

__all__ = ["UNREADABLE", "Run", "Runs", "address_of", "id_of"]

NESTED = ("runs", "elasticdl_runs")
"""Directories that hold runs by their name: they are looked into when their parent is given."""
AT_ONCE = 32 << 20
"""Bytes of events that are read at one look: some two hundred thousand events."""


class Runs:
    """The runs in these directories; each may be a run too.

    Args:
      directories: local or at any fsspec address. One that is not there may come later.
    """

    def __init__(self, directories: Sequence[str], clock: Clock = time.monotonic) -> None:
        self.roots: list[UPath] = []
        self.problems: list[dict[str, str]] = []
        self._runs: dict[str, Run] = {}
        self._by_place: dict[str, Run] = {}
        self._lock = threading.Lock()
        self._clock = clock
        self._seen = Seen(LOCAL_S, clock)
        for one in directories:
            self.add(one)

    def add(self, directory: str) -> None:
        """Look there too."""
        root = UPath(address_of(place(directory)))
        with self._lock:
            if root not in self.roots:
                self.roots.append(root)
            is_slow = any(not is_local(one) for one in self.roots)
            self._seen = Seen(REMOTE_S if is_slow else LOCAL_S, self._clock)

    def all(self) -> list[Run]:
        """All runs, the newest first."""
        with self._lock:
            if not self._seen.is_fresh():
                with self._seen.looking():
                    self._find()
                    for run in self._runs.values():
                        run.refresh()
            runs = [run for run in self._runs.values() if run.is_there]
        return sorted(runs, key=lambda run: (run.account.started or 0.0, run.name), reverse=True)

    def get(self, id: str) -> Run:
        """One run, as it is now.

        Raises:
          NotFound: there is none, or no longer.
        """
        run = self._runs.get(id)
        if run is None:
            self.all()
            run = self._runs.get(id)
        if run is not None:
            run.refresh()
        if run is None or not run.is_there:
            raise NotFound(f"There is no run {id!r}, or no longer. Look at the list of runs.")
        return run

    def _find(self) -> None:
        self.problems = []
        found: dict[str, Run] = {}
        by_place: dict[str, Run] = {}
        for root in list(self.roots):
            try:
                places = _run_places(root)
            except ElasticDLError as error:
                self.problems.append({"where": str(root), "message": str(error)})
                continue
            if places is None:
                message = f"There is no directory {root}."
                self.problems.append({"where": str(root), "message": message})
            for path in places or ():
                known = self._by_place.get(str(path)) or Run(path, root, self._clock, AT_ONCE)
                by_place[str(path)] = found[known.id] = known
        self._runs, self._by_place = found, by_place


def _run_places(root: UPath) -> list[UPath] | None:
    """The root if it is a run, else the directories below it that may be; None when it is not there."""
    found = entries(root, root)
    if JOB in found or EVENTS in found:
        return [root]
    if not found and not _exists(root):
        return None
    below = [name for name, one in found.items() if one.is_directory and not name.startswith(".")]
    places = [root / name for name in below if name not in NESTED]
    for name in (name for name in below if name in NESTED):
        with contextlib.suppress(ElasticDLError):
            inner = entries(root / name, root)
            places += [root / name / one for one, about in inner.items() if about.is_directory]
    return places


def _exists(root: UPath) -> bool:
    with contextlib.suppress(Exception):
        return bool(root.exists())
    return True
