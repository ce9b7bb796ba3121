"""One directory a run: what is where, who holds it, and when it may be used again.

<output>/
  job.json       what was asked for
  events.jsonl   what happened
  checkpoints/   states to resume from
  tensorboard/   curves
  model/         the trained model; with --export_metric the best one, and model_last/ the last
  logs/          what each worker printed; master.jsonl what the master must not forget

The directory may be at any fsspec address.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from upath import UPath

from elasticdl.artifacts.hold import Hold, Holder, holder_of, in_use
from elasticdl.errors import InvalidValue, NotFound, OutputExists
from elasticdl.storage import children, is_local, place, remove, storage_errors, write_file

__all__ = ["RunDirectory"]

OURS = (
    "job.json",
    "events.jsonl",
    "checkpoints",
    "tensorboard",
    "model",
    "model_last",
    "logs",
    "master.jsonl",
    "scale.json",
    "stop.json",
    ".lock",
)


class RunDirectory:
    """The paths of a run below one directory, held by one process at a time."""

    def __init__(self, path: str | os.PathLike[str] | UPath) -> None:
        self.path = place(path)
        self._wish = self.path / "stop.json"
        self._hold = Hold(self.path, self._wish)

    @property
    def job(self) -> UPath:
        return self.path / "job.json"

    @property
    def events(self) -> UPath:
        return self.path / "events.jsonl"

    @property
    def checkpoints(self) -> UPath:
        return self.path / "checkpoints"

    @property
    def tensorboard(self) -> UPath:
        return self.path / "tensorboard"

    @property
    def model(self) -> UPath:
        return self.path / "model"

    @property
    def last_model(self) -> UPath:
        return self.path / "model_last"

    @property
    def master(self) -> UPath:
        return self.path / "master.jsonl"

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
        with storage_errors(self.path, doing="read"):
            names = {child.name for child in children(self.path)}
        if resume:
            if self.job.name not in names:
                raise NotFound(f"There is no run to resume in {self.path}. Leave --resume out.")
            return
        if is_local(self.path):
            self._check_parents()
        foreign = sorted(names.difference(OURS))
        if foreign and self.job.name not in names:
            raise OutputExists(
                f"The output {self.path} holds other files ({', '.join(foreign[:5])}). "
                "Give a directory that is empty or does not exist."
            )
        if self.job.name in names and (holder := self.holder):
            raise in_use(self.path, f" ({holder})")
        if self.job.name in names and not overwrite and not self._is_worthless:
            raise OutputExists(
                f"The output {self.path} holds an earlier run. Go on with it with --resume, replace it with "
                "--overwrite, or give another --output."
            )

    def _check_parents(self) -> None:
        for where in (self.path, *self.path.parents):
            if where.exists() and not where.is_dir():
                raise OutputExists(f"The output {self.path}: {where} is a file. Give a directory.")

    @property
    def _is_worthless(self) -> bool:
        """A run that failed before it saved anything: replacing it loses nothing."""
        if children(self.model) or children(self.checkpoints):
            return False
        try:
            last = json.loads(self.events.read_text(encoding="utf-8").splitlines()[-1])
        except (OSError, ValueError, IndexError):
            return False
        return bool(last.get("event") == "run_ended" and last.get("status") == "failed")

    @contextmanager
    def held(self, *, resume: bool, job: Mapping[str, Any]) -> Iterator[None]:
        """Hold the directory for this process; unless it is resumed, empty it of an earlier run."""
        with storage_errors(self.path):
            if is_local(self.path):
                self.path.mkdir(parents=True, exist_ok=True)
            self._hold.take()
        try:
            if not resume:
                for name in OURS[:-1]:
                    remove(self.path / name)
                write_file(self.job, (json.dumps(job, indent=2, default=str) + "\n").encode())
            remove(self._wish)  # one that was left was for an earlier run
            yield
        finally:
            with contextlib.suppress(Exception):  # there may be worse to tell
                remove(self._wish)
            self._hold.release()

    @property
    def holder(self) -> Holder | None:
        """Who writes to it right now; None when nobody does."""
        return holder_of(self.path)

    def ask_to_stop(self) -> None:
        """Wish that the run that holds it ends with a checkpoint, wherever it runs."""
        write_file(self._wish, (json.dumps({"time": round(time.time(), 3)}) + "\n").encode())

    def take_back(self) -> None:
        """Wish it no longer."""
        remove(self._wish)

    def is_asked_to_stop(self) -> bool:
        """Whether somebody wishes that the run, which is held here, ends."""
        return self._hold.is_asked_to_end()
