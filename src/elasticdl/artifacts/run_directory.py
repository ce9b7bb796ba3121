"""One directory a run: what is where, who holds it, and when it may be used again.

<output>/
  job.json       what was asked for
  events.jsonl   what happened
  checkpoints/   states to resume from
  tensorboard/   curves
  model/         the trained model
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from elasticdl.errors import InvalidValue, NotFound, OutputExists, StorageFailure

__all__ = ["RunDirectory", "storage_errors", "write_atomically"]

OURS = ("job.json", "events.jsonl", "checkpoints", "tensorboard", "model", ".lock")


class RunDirectory:
    """The paths of a run below one directory, held by one process at a time."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._lock: IO[str] | None = None

    @property
    def job(self) -> Path:
        return self.path / "job.json"

    @property
    def events(self) -> Path:
        return self.path / "events.jsonl"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def tensorboard(self) -> Path:
        return self.path / "tensorboard"

    @property
    def model(self) -> Path:
        return self.path / "model"

    @classmethod
    def fresh(cls, name: str) -> RunDirectory:
        """A directory that does not exist yet, below elasticdl_runs/."""
        root = Path("elasticdl_runs")
        number = 1
        while (root / f"{name}-{number}").exists():
            number += 1
        return cls(root / f"{name}-{number}")

    def check(self, *, resume: bool, overwrite: bool) -> None:
        """Refuse, before anything is loaded, a directory that holds something worth keeping."""
        if resume and overwrite:
            raise InvalidValue("--resume and --overwrite contradict each other. Give one of them.")
        if resume:
            if not self.job.exists():
                raise NotFound(f"There is no run to resume in {self.path}. Leave --resume out.")
            return
        for place in (self.path, *self.path.parents):
            if place.exists() and not place.is_dir():
                raise OutputExists(f"The output {self.path}: {place} is a file. Give a directory.")
        if not self.path.exists():
            return
        foreign = sorted(p.name for p in self.path.iterdir() if p.name not in OURS)
        if foreign and not self.job.exists():
            raise OutputExists(
                f"The output {self.path} holds other files ({', '.join(foreign[:5])}). "
                "Give a directory that is empty or does not exist."
            )
        if self.job.exists() and not overwrite and not self._is_worthless:
            raise OutputExists(
                f"The output {self.path} holds an earlier run. Go on with it with --resume, replace it with "
                "--overwrite, or give another --output."
            )

    @property
    def _is_worthless(self) -> bool:
        """A run that failed before it saved anything: replacing it loses nothing."""
        if self.model.exists() or (self.checkpoints.exists() and any(self.checkpoints.iterdir())):
            return False
        try:
            last = json.loads(self.events.read_text(encoding="utf-8").splitlines()[-1])
        except (OSError, ValueError, IndexError):
            return False
        return bool(last.get("event") == "run_ended" and last.get("status") == "failed")

    def take(self, *, resume: bool, job: Mapping[str, Any]) -> None:
        """Hold the directory for this process; unless it is resumed, empty it of an earlier run."""
        with storage_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            self._hold()
            if not resume:
                for name in OURS[:-1]:
                    _remove(self.path / name)
                write_atomically(self.job, json.dumps(job, indent=2, default=str) + "\n")

    @contextmanager
    def held(self, *, resume: bool, job: Mapping[str, Any]) -> Iterator[None]:
        """`take` it, and let go of it at the end."""
        self.take(resume=resume, job=job)
        try:
            yield
        finally:
            self.release()

    def _hold(self) -> None:
        lock = (self.path / ".lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise OutputExists(
                f"Another run is writing to {self.path} right now. Wait for it, or give another --output."
            ) from None
        self._lock = lock

    def release(self) -> None:
        if self._lock is not None:
            (self.path / ".lock").unlink(missing_ok=True)
            self._lock.close()
            self._lock = None


def write_atomically(path: Path, text: str) -> None:
    """Either the old content or the new, never a part of it."""
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """What the file system refuses, in words."""
    try:
        yield
    except OSError as error:
        if isinstance(error, OutputExists | StorageFailure):
            raise
        remedy = {
            errno.ENOSPC: "Free some space there or give another --output.",
            errno.EDQUOT: "The quota is used up: free some space or give another --output.",
            errno.EACCES: "Give an --output that you may write to.",
            errno.EROFS: "It is read-only: give another --output.",
        }.get(error.errno or 0, "Give another --output.")
        raise StorageFailure(
            error.errno, f"Cannot write to {path}: {error.strerror or error}. {remedy}"
        ) from error


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
