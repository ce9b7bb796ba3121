"""A running job's number of workers, changed from outside: `scale.json` in its run directory.

Who wishes writes the file, and waits until the run's events say that it was heard; the run looks for it. Neither
needs to know where the other one runs.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from upath import UPath

from elasticdl.artifacts.run_directory import RunDirectory
from elasticdl.errors import InvalidValue, RunError
from elasticdl.job.parse import parse_workers, workers_text
from elasticdl.runtime.jobs.record import events_of
from elasticdl.storage import is_local, place, remove, storage_errors, write_file

__all__ = ["ANSWER_S", "SCALE_FILE", "ScaleWish", "ask"]

SCALE_FILE = "scale.json"
ANSWER_S = 30.0
"""How long a run may take to hear a wish: the events of one at a remote address come every ten seconds."""

REMOTE_S = 5.0
"""How often a run looks at a remote address."""

Workers = tuple[int, int]


class ScaleWish:
    """The reading side. A wish that was there before the run began to look is none.

    Args:
      directory: the run directory, at any address.
      clock: seconds, for how often a remote address is looked at.
    """

    def __init__(self, directory: str | UPath, clock: Callable[[], float] = time.monotonic) -> None:
        self._file = place(directory) / SCALE_FILE
        self._clock = clock
        self._looked = clock()
        self._seen = self._stamp()

    def poll(self) -> Workers | None:
        """The least and the most workers that are wished for, once for each wish."""
        if not is_local(self._file):
            if self._clock() - self._looked < REMOTE_S:
                return None
            self._looked = self._clock()
        stamp = self._stamp()
        if stamp is None or stamp == self._seen:
            return None
        self._seen = stamp
        return self._read()

    def _stamp(self) -> Any:
        """What changes with every wish; None when there is none or it cannot be seen now."""
        with contextlib.suppress(Exception):  # whatever a driver raises: the next look may succeed
            if is_local(self._file):
                stat = Path(str(self._file)).stat()
                return stat.st_mtime_ns, stat.st_ino
            self._file.fs.invalidate_cache()
            return self._file.read_bytes()
        return None

    def _read(self) -> Workers | None:
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
            wish = json.loads(self._file.read_bytes())
            return parse_workers("num_workers", wish["num_workers"])
        return None


def ask(
    directory: RunDirectory,
    workers: Workers,
    *,
    wait: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, Any]:
    """Wish for another number of workers, and return the event by which the run says that it heard.

    Raises:
      InvalidValue: the run has no workers, or has ended.
      RunError: the run does not answer. The wish is taken back.
    """
    told = len(events_of(directory))
    _refuse_ended(directory)
    _refuse_local(directory)
    wish = {"num_workers": workers_text(workers), "time": round(time.time(), 3)}
    file = directory.path / SCALE_FILE
    write_file(file, (json.dumps(wish) + "\n").encode())
    until = clock() + ANSWER_S
    while clock() < until:
        for event in events_of(directory)[told:]:
            if event["event"] == "scaled":
                return _heard(event, wish["num_workers"])
        _refuse_ended(directory)
        wait(0.1 if is_local(directory.path) else 2.0)
    remove(file)
    raise RunError(
        f"The run in {directory.path} did not answer within {ANSWER_S:g} s: it may have been killed. Nothing was "
        "changed. Look whether its process still runs; go on with a dead one with --resume."
    )


def _heard(event: dict[str, Any], wish: Any) -> dict[str, Any]:
    if event["num_workers"] != wish:
        raise RunError(
            f"Somebody else asked for {event['num_workers']} workers at the same moment, and that is what counts. "
            "Ask again."
        )
    return event


def _refuse_local(directory: RunDirectory) -> None:
    with storage_errors(directory.job, doing="read"):
        # An experiment has it only while workers train.
        is_there = directory.job.exists()
        text = directory.job.read_text(encoding="utf-8") if is_there else "{}"
    try:
        strategy = json.loads(text).get("distribution_strategy", "Local")
    except (ValueError, AttributeError):
        raise InvalidValue(f"{directory.job} is not the description of a job.") from None
    if strategy == "Local":
        raise InvalidValue(
            f"The run in {directory.path} has no workers: it runs in one process. Only runs with "
            "--distribution_strategy=AllreduceStrategy can be scaled."
        )


def _refuse_ended(directory: RunDirectory) -> None:
    turns = [e for e in events_of(directory) if e["event"] in ("run_started", "run_ended")]
    if turns and turns[-1]["event"] == "run_ended":
        remove(directory.path / SCALE_FILE)
        raise InvalidValue(
            f"The run in {directory.path} has ended ({turns[-1].get('status', 'ended')}). Go on with it with "
            "--resume and another --num_workers."
        )
