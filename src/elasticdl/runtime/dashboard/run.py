"""One run directory, as far as it was read; looked at again when somebody asks, and only as often as it is cheap."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import yaml
from upath import UPath

from elasticdl.artifacts.hold import Holder, holder_of
from elasticdl.errors import ElasticDLError, StorageFailure
from elasticdl.runtime.dashboard.digest import Digest
from elasticdl.runtime.dashboard.files import Entry, entries, read_bytes
from elasticdl.runtime.dashboard.readings import Reading
from elasticdl.runtime.dashboard.shortening import fits
from elasticdl.runtime.jobs.account import Account, account_of
from elasticdl.runtime.jobs.find import CONFIG
from elasticdl.storage import is_local

__all__ = [
    "EVENTS",
    "JOB",
    "LOCAL_S",
    "REMOTE_S",
    "UNREADABLE",
    "Clock",
    "Run",
    "Seen",
    "address_of",
    "id_of",
]

JOB, EVENTS, LOCK = "job.json", "events.jsonl", ".lock"
UNREADABLE = "unreadable"
LOCAL_S, REMOTE_S = 0.25, 3.0
"""How long what was seen is new enough."""
ENDED_S = 20.0
"""The same of a remote run that nobody goes on with: each look is a request."""
SHARE, LONGEST_S = 20, 5.0
"""To look takes at most a twentieth of the time, as long as nobody waits too long for it."""
LARGEST_CONFIG = 4 << 20
WAIT_S = 10.0

Clock = Callable[[], float]


class Run:
    """One run directory, as far as it was read.

    Attributes:
      id: an opaque name for addresses.
      job: its job.json, or of an experiment its config.yaml.
      account: what became of it so far.
      found: what is in the directory.
      problems: what could not be read or understood, in words.
      version: changes when something has changed.
    """

    def __init__(
        self,
        path: UPath,
        root: UPath,
        clock: Clock = time.monotonic,
        at_once: int | None = None,
    ) -> None:
        self.address = address_of(path)
        self.path, self.root = UPath(self.address), UPath(address_of(root))
        self.id = id_of(self.address)
        self.name = str(path.name) or self.address
        self.lock, self.searching = threading.RLock(), threading.Lock()
        self.reading = Reading(self.path / EVENTS, self.root, at_once)
        self.job: Mapping[str, Any] = {}
        self.found: dict[str, Entry] = {}
        self.problems: list[str] = []
        self.account = Account(self.name, self.address)
        self.version = ""
        self._job_mark = ""
        self._seen = Seen(LOCAL_S if is_local(path) else REMOTE_S, clock)

    @property
    def digest(self) -> Digest:
        return self.reading.digest

    @property
    def is_experiment(self) -> bool:
        return CONFIG in self.found

    @property
    def is_live(self) -> bool:
        return self.account.process is not None

    @property
    def is_there(self) -> bool:
        """Whether it is a run's directory, now."""
        return bool(self.problems) or JOB in self.found or EVENTS in self.found

    @contextlib.contextmanager
    def locked(self, wait_s: float = WAIT_S) -> Iterator[None]:
        """Nobody changes it meanwhile.

        Raises:
          StorageFailure: it is being read, and that takes too long.
        """
        if not self.lock.acquire(timeout=wait_s):
            raise StorageFailure(f"{self.address} does not answer. Try again later.")
        try:
            yield
        finally:
            self.lock.release()

    def refresh(self) -> None:
        """Look again, unless it was just done; read what is new. Never raises: what fails is one of its problems."""
        with self.lock:
            if self._seen.is_fresh():
                return
            with self._seen.looking():
                try:
                    self._look()
                except ElasticDLError as error:
                    self._fail(str(error))
                except Exception as error:  # one run that nobody has thought of hides no other
                    self._fail(f"Cannot understand {self.address}: {type(error).__name__}.")
                if not is_local(self.path):
                    self._seen.least_s = REMOTE_S if self.is_live else ENDED_S

    def _look(self) -> None:
        self.found = entries(self.path, self.root)
        holder = holder_of(self.path) if LOCK in self.found else None
        problems: list[str] = []
        marks = [self._read_job(problems), str(self.is_experiment), str(holder)]
        self.reading.update(self.found.get(EVENTS))
        if self.reading.broken:
            lines = "1 line" if self.reading.broken == 1 else f"{self.reading.broken} lines"
            problems.append(f"{lines} of events.jsonl cannot be understood and were left out.")
        if self.reading.read < 1:
            problems.append(
                f"events.jsonl is large: {self.reading.read:.0%} of it was read so far."
            )
        marks += [self.reading.mark, *problems]
        version = _digest_of(marks)
        if version != self.version:
            self.account = self._account(holder)
            self.version, self.problems = version, problems

    def _account(self, holder: Holder | None) -> Account:
        return account_of(
            self.name,
            self.address,
            self.job,
            self.digest.account_events,
            holder,
            is_experiment=self.is_experiment,
        )

    def _fail(self, message: str) -> None:
        self.problems = [message]
        self.account = Account(self.name, self.address, status=UNREADABLE, message=message)
        self.version = _digest_of([message])

    def _read_job(self, problems: list[str]) -> str:
        name = JOB if JOB in self.found else CONFIG
        entry = self.found.get(name)
        mark = "" if entry is None else entry.mark
        if mark != self._job_mark:
            self.job = {}
            self.job = self._parsed(name)
            self._job_mark = mark
        if entry is not None and not self.job:
            problems.append(f"{name} cannot be understood: the configuration is not known.")
        return mark

    def _parsed(self, name: str) -> Mapping[str, Any]:
        data = read_bytes(self.path / name, self.root, 0, LARGEST_CONFIG)
        with contextlib.suppress(ValueError, RecursionError, yaml.YAMLError):
            found = json.loads(data) if name == JOB else yaml.safe_load(data)
            if isinstance(found, dict) and fits(found, LARGEST_CONFIG):
                return found
        return {}


class Seen:
    """When something was looked at, and whether that is new enough."""

    def __init__(self, least_s: float, clock: Clock) -> None:
        self.least_s, self._clock = least_s, clock
        self._until = float("-inf")

    def is_fresh(self) -> bool:
        return self._clock() < self._until

    @contextlib.contextmanager
    def looking(self) -> Iterator[None]:
        begun = self._clock()
        yield
        ended = self._clock()
        self._until = ended + max(self.least_s, min(LONGEST_S, SHARE * (ended - begun)))


def id_of(address: str) -> str:
    """The id of the run at an address; any text is one."""
    return hashlib.sha256(address.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def address_of(path: UPath) -> str:
    """The whole address, the same for one directory however it was named."""
    return os.path.realpath(str(path)) if is_local(path) else str(path).rstrip("/")


def _digest_of(parts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16]
