"""What became of a job so far, made of its events. Pure: events in, an account out."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from elasticdl.artifacts.hold import Holder
from elasticdl.tracking import words
from elasticdl.tracking.group_changes import GroupChanges

__all__ = ["DONE", "KILLED", "RUNNING", "Account", "Sittings", "account_of", "as_moment"]

RUNNING = "running"
KILLED = "killed"
"""It told of no end, and nobody holds its directory."""
DONE = ("completed", "stopped")
"""How a job ends that need not go on."""

END_OF_TIME = 253_402_300_800.0
"""The end of the year 9999, in seconds since 1970."""
LARGEST = 2**53
"""Of a larger number every other one is lost in JSON."""
_WORDS = {KILLED: "ended without a word", "deleted": "was deleted"}

Event = Mapping[str, Any]


@dataclass(frozen=True)
class Account:
    """A job, as far as it is known.

    Attributes:
      name: by which `elasticdl jobs` finds it.
      where: its run directory, or the namespace of a cluster.
      command: train, run, ...
      status: running, completed, stopped, interrupted, preempted, failed or killed; on Kubernetes also submitted,
        queued, starting and deleted.
      message: what there is to say of that.
      step: steps so far, over all epochs.
      epoch: the epoch that is trained or was the last, counted from 1.
      num_epochs: epochs in all.
      loss: the last one that was told.
      metrics: those of the last evaluation.
      workers: who trains together.
      wanted: how many workers are wanted, `2` or `2:4`; None of a run in one process.
      changes: how often the workers changed.
      change: the last change, in words.
      warning: the last one.
      started, ended: in seconds since 1970; None where it is not known. A run that was resumed started when it
        was begun for the first time. Of a killed run the end is its last word.
      process: who runs it.
    """

    name: str
    where: str
    command: str = ""
    status: str = ""
    message: str | None = None
    step: int | None = None
    epoch: int | None = None
    num_epochs: int | None = None
    loss: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    workers: Sequence[str] = ()
    wanted: str | None = None
    changes: int = 0
    change: str | None = None
    warning: str | None = None
    started: float | None = None
    ended: float | None = None
    process: str | None = None

    @property
    def said(self) -> str:
        """The status in words."""
        return _WORDS.get(self.status, self.status)


def account_of(
    name: str,
    where: str,
    job: Mapping[str, Any],
    events: Sequence[Event],
    holder: Holder | None,
    *,
    is_experiment: bool = False,
) -> Account:
    """The account of a run directory.

    Args:
      job: its job.json.
      events: what it has told.
      holder: who holds the directory.
    """
    go = _last_go(events)
    begun = _last(go, "run_started")
    end = _last(go, "run_ended") if holder is None else {}
    status = RUNNING if holder else str(end.get("status", KILLED))
    changes, change = _changes(go)
    is_elastic = job.get("distribution_strategy", "Local") != "Local" or bool(changes)
    scaled = _last(go, "scaled").get("num_workers")
    started = _started(events, holder)
    return Account(
        name=name,
        where=where,
        command="run" if is_experiment else str(job.get("command") or begun.get("command") or ""),
        status=status,
        message=_text(end.get("error")),
        step=_step(go),
        epoch=_epoch(go),
        num_epochs=_whole(begun.get("num_epochs")),
        loss=_number(_last(go, "step", "epoch").get("loss")),
        metrics=_metrics(_last(go, "evaluation").get("metrics")),
        workers=_members(go),
        wanted=str(scaled or job.get("num_workers") or 1) if is_elastic else None,
        changes=max(0, changes - 1),
        change=change,
        warning=_text(_last(go, "warning").get("message")),
        started=started,
        ended=_ended(end or (go[-1] if go else {}), started) if holder is None else None,
        process=None if holder is None else str(holder),
    )


class Sittings:
    """Told of every event in order, knows where a run was begun or resumed.

    A run whose workers are all lost starts again too, but it is the same sitting.
    """

    def __init__(self) -> None:
        self._is_new, self._is_over, self._is_started, self._lost = True, False, False, False

    def begins(self, event: Event) -> bool:
        """Whether a sitting begins with this event."""
        kind = event["event"]
        is_start = kind == "run_started"
        goes_on = is_start or kind == "worker_joined"  # what else comes after the end belongs to it
        again = is_start and not self._lost and self._is_started
        begins = self._is_new or again or (self._is_over and goes_on)
        if begins:
            self._is_started, self._lost = False, False
        self._is_started = self._is_started or is_start
        self._lost = kind == "worker_lost" or (self._lost and not is_start)
        self._is_over = kind == "run_ended" or (self._is_over and not begins)
        self._is_new = False
        return begins


def _last_go(events: Sequence[Event]) -> list[Event]:
    """The events since the run was begun or resumed for the last time."""
    go: list[Event] = []
    sittings = Sittings()
    for event in events:
        if sittings.begins(event):
            go = []
        go.append(event)
    return go


def _changes(events: Sequence[Event]) -> tuple[int, str | None]:
    """How often a group was formed, and how the last change reads."""
    group, count, said = GroupChanges(), 0, None
    for event in events:
        with contextlib.suppress(AttributeError, KeyError, TypeError, ValueError):
            change = group.heard(event)
            if change is not None:
                count += 1
                said = None if change.is_first else words.changed(change)
    return count, said


def _last(events: Sequence[Event], *kinds: str) -> Event:
    return next((event for event in reversed(events) if event["event"] in kinds), {})


def _step(events: Sequence[Event]) -> int | None:
    steps = (_whole(event.get("step")) for event in reversed(events))
    return next((step for step in steps if step is not None), None)


def _epoch(events: Sequence[Event]) -> int | None:
    epoch = _whole(_last(events, "step", "epoch").get("epoch"))
    return None if epoch is None else epoch + 1


def _members(events: Sequence[Event]) -> tuple[str, ...]:
    members = _last(events, "group_formed").get("members")
    return tuple(map(str, members)) if isinstance(members, list) else ()


def _metrics(value: Any) -> dict[str, float]:
    told = value.items() if isinstance(value, dict) else ()
    numbers = {str(name): _number(n) for name, n in told}
    return {name: n for name, n in numbers.items() if n is not None}


def _started(events: Sequence[Event], holder: Holder | None) -> float | None:
    first = _time(events[0]) if events else None
    since = as_moment(holder.since) if holder else None
    return min((time for time in (first, since) if time), default=first)


def _ended(event: Event, started: float | None) -> float | None:
    """Never before it began, whatever a clock that was set back says."""
    ended = _time(event)
    return ended if ended is None or started is None else max(started, ended)


def _time(event: Event) -> float | None:
    return as_moment(event.get("time"))


def as_moment(value: Any) -> float | None:
    """Seconds since 1970; None where no calendar has such a day."""
    seconds = _number(value)
    return None if seconds is None or not 0 <= seconds < END_OF_TIME else seconds


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    with contextlib.suppress(OverflowError):
        return float(value) if is_number else None
    return None


def _whole(value: Any) -> int | None:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value if is_whole and abs(value) <= LARGEST else None


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
