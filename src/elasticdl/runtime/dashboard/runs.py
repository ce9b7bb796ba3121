"""The runs below some directories."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence

from upath import UPath

from elasticdl.errors import ElasticDLError, NotFound
from elasticdl.runtime.dashboard.files import entries
from elasticdl.runtime.dashboard.remote import RemoteRoot
from elasticdl.runtime.dashboard.run import (
    EVENTS,
    JOB,
    LOCAL_S,
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
        self._local: dict[str, Run] = {}
        self._local_problems: list[dict[str, str]] = []
        self._remote: dict[str, RemoteRoot] = {}
        self._by_root: dict[str, dict[str, Run]] = {}
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
                if not is_local(root):
                    self._remote[str(root)] = RemoteRoot(root, self._found, self._clock)
            self._seen = Seen(LOCAL_S, self._clock)

    def all(self) -> list[Run]:
        """All runs, the newest first."""
        with self._lock:
            if not self._seen.is_fresh():
                with self._seen.looking():
                    self._look()
            found, problems = dict(self._local), list(self._local_problems)
        for remote in list(self._remote.values()):
            runs, problem = remote.look()
            found |= {run.id: run for run in runs}
            if problem is not None:
                problems.append({"where": str(remote.root), "message": problem})
        self._runs, self.problems = found, problems
        there = [run for run in found.values() if run.is_there]
        return sorted(there, key=lambda run: (run.account.started or 0.0, run.name), reverse=True)

    def get(self, id: str) -> Run:
        """One run, as it is now.

        Raises:
          NotFound: there is none, or no longer.
        """
        run = self._runs.get(id)
        if run is None:
            self.all()
            run = self._runs.get(id)
        if run is not None and (remote := self._remote.get(str(run.root))) is not None:
            remote.look()
        elif run is not None:
            run.refresh()
        if run is None or not run.is_there:
            raise NotFound(f"There is no run {id!r}, or no longer. Look at the list of runs.")
        return run

    def _look(self) -> None:
        """At the directories of this machine, which answer at once."""
        found: dict[str, Run] = {}
        problems: list[dict[str, str]] = []
        for root in [root for root in self.roots if is_local(root)]:
            try:
                runs, problem = self._found(root)
            except ElasticDLError as error:
                runs, problem = (), str(error)
            if problem is not None:
                problems.append({"where": str(root), "message": problem})
            found |= {run.id: run for run in runs}
        for run in found.values():
            run.refresh()
        self._local, self._local_problems = found, problems

    def _found(self, root: UPath) -> tuple[Sequence[Run], str | None]:
        """The runs below a root, those that were known as they are; and what is wrong with it."""
        places = _run_places(root)
        if places is None:
            return (), f"There is no directory {root}."
        known = self._by_root.get(str(root), {})
        self._by_root[str(root)] = {
            str(path): known.get(str(path)) or Run(path, root, self._clock, AT_ONCE)
            for path in places
        }
        return list(self._by_root[str(root)].values()), None


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
