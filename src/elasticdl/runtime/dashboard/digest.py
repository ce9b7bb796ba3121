"""What the views need of a run's events, taken in one by one and kept small. Pure.

Curves are packed. Of all else is kept what counts: `account_events` give the same account as all events do.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from elasticdl.runtime.dashboard.columns import Points, moment, number, whole
from elasticdl.runtime.elastic.stalls import Stalls
from elasticdl.runtime.jobs.account import LARGEST, Sittings
from elasticdl.tracking.group_changes import Change, GroupChanges

__all__ = ["STRUCTURAL", "Digest", "Event"]

Event = Mapping[str, Any]

_OF_RUN = ("run_started", "run_ended", "scaled", "master_restarted")
_OF_WORKERS = ("worker_joined", "worker_lost", "worker_left", "group_formed")
STRUCTURAL = frozenset((*_OF_RUN, *_OF_WORKERS))
"""Few, and each counts. Of all other events the last of its kind before one of these is enough for an account."""
MOST_CURVES = 200
MOST_KEPT = 20_000


class Digest:
    """A run so far.

    Attributes:
      account_events: of which the account is made.
      curves: by key: `loss`, `examples_per_s`, `workers`, `val_...`, and what epochs log of the training.
      audits: the last `epoch_audit` of each epoch.
      epoch_ends: the step at each epoch's end.
      tasks: the ledger's, of the last step.
      rates: examples a second of each worker, with the time they were told.
      changes: the group of workers, each time it was formed, by the number of the event.
      epochs_from: from which event on so many epochs were wanted.
      sitting_began: when and at which step the training began or was resumed for the last time.
    """

    def __init__(self) -> None:
        self.account_events: list[Event] = []
        self.curves: dict[str, Points] = {}
        self.audits: dict[int, Event] = {}
        self.epoch_ends: dict[int, int] = {}
        self.tasks: Mapping[str, Any] | None = None
        self.rates: dict[str, tuple[float, float]] = {}
        self.reports: dict[str, Event] = {}
        self.exported: Event | None = None
        self.started: Event = {}
        self.first_time: float | None = None
        self.last_time: float | None = None
        self.sitting_began: tuple[float, int] | None = None
        self.evaluating_s = 0.0
        self.total = 0
        self.changes: dict[int, Change] = {}
        self.epochs_from: list[tuple[int, int | None]] = []
        self.stalls, self._group = Stalls(), GroupChanges()
        self._sittings = Sittings()
        self._recent: dict[str, int] = {}
        self._step_time: float | None = None

    def add(self, event: Event) -> None:
        """Take in the next event; one with fields of another form than ours does no harm."""
        kind = str(event["event"])
        time = moment(event)
        if time is not None:
            self.first_time = time if self.first_time is None else self.first_time
            self.last_time = time
        if self._sittings.begins(event):
            self._begin()
        self._keep(kind, event)
        if time is not None and _is_of_our_form(event):
            self._hear(event)
        with contextlib.suppress(TypeError, ValueError, AttributeError):
            self._note(kind, event, time or self.last_time or 0.0)
        self.total += 1

    def _hear(self, event: Event) -> None:
        with contextlib.suppress(KeyError, TypeError, ValueError):
            self.stalls.heard(event)
            if (change := self._group.heard(event)) is not None:
                self.changes[self.total] = change

    def _begin(self) -> None:
        self.stalls, self._group = Stalls(), GroupChanges()
        self.sitting_began, self._step_time, self.evaluating_s = None, None, 0.0
        self.rates, self.tasks = {}, None

    def _keep(self, kind: str, event: Event) -> None:
        """Of events that are many only the last of its kind since the last that counts."""
        kept = self.account_events
        if len(kept) > 1 and kept[-1]["event"] == kind and kind not in STRUCTURAL:
            kept[-1] = event
            return
        if kind in STRUCTURAL:
            self._recent = {}
        elif kind in self._recent:
            at = self._recent.pop(kind)
            del self.account_events[at]
            self._recent = {k: n - (n > at) for k, n in self._recent.items()}
        if kind not in STRUCTURAL and kept:  # the first of all tells when it began
            self._recent[kind] = len(self.account_events)
        self.account_events.append(event)
        if len(self.account_events) > 2 * MOST_KEPT:  # workers that come and go for ever
            del self.account_events[1 : len(self.account_events) - MOST_KEPT]
            self._recent = {}

    def _note(self, kind: str, event: Event, time: float) -> None:
        if kind == "step":
            self._note_step(event, time)
        elif kind == "evaluation":
            self._note_evaluation(event, time)
        elif kind == "epoch":
            self._note_epoch(event, time)
        elif kind == "run_started":
            self.started = event
            began = whole(event, "step") or 0  # what comes after it is done again
            self.epoch_ends = {n: end for n, end in self.epoch_ends.items() if end <= began}
            self.epochs_from.append((self.total, whole(event, "num_epochs")))
            self.sitting_began = self.sitting_began or (time, whole(event, "step") or 0)
        elif kind == "group_formed":
            self._curve("workers", event, time, float(len(event.get("members") or ())))
        elif kind == "epoch_audit":
            if (epoch := whole(event, "epoch")) is not None:
                self.audits[epoch] = event
        elif kind == "report":
            self.reports[str(event.get("name"))] = event
        elif kind == "exported":
            self.exported = event

    def _note_step(self, event: Event, time: float) -> None:
        self._curve("loss", event, time, number(event, "loss"))
        self._curve("examples_per_s", event, time, number(event, "examples_per_s"))
        if isinstance(tasks := event.get("tasks"), dict):
            self.tasks = tasks
        by_worker = event.get("by_worker")
        if isinstance(by_worker, dict) and self._step_time is not None:
            seconds = time - self._step_time
            for name in by_worker if seconds > 0 else ():
                examples = number(by_worker, name) or 0.0
                self.rates[str(name)] = (time, examples / seconds)
        self._step_time = time

    def _note_evaluation(self, event: Event, time: float) -> None:
        self.evaluating_s += number(event, "seconds") or 0.0
        metrics = event.get("metrics")
        if isinstance(metrics, dict):
            for name in metrics:
                self._curve(f"val_{name}", event, time, number(metrics, name))

    def _note_epoch(self, event: Event, time: float) -> None:
        epoch, step = whole(event, "epoch"), whole(event, "step")
        if epoch is not None and step is not None:
            self.epoch_ends[epoch] = step
        for name in event:
            is_own = name not in ("time", "event", "epoch", "step", "loss")
            if is_own and not name.startswith("val_"):  # those are in the evaluation
                self._curve(name, event, time, number(event, name))

    def _curve(self, key: str, event: Event, time: float, value: float | None) -> None:
        step = number(event, "step")
        if value is None or step is None:
            return
        if key not in self.curves and len(self.curves) < MOST_CURVES:
            self.curves[key] = Points()
        if key in self.curves:
            self.curves[key].add(step, time, value)


def _is_of_a_size(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) <= LARGEST


def _is_of_our_form(event: Event) -> bool:
    """Whether what is calculated with can be: one bad line would spoil all that is made of it."""
    step = event.get("step")
    if event["event"] == "step":
        return type(step) is int and whole(event, "step") is not None
    told = (event.get(name) for name in ("step", "stall_s", "redone"))
    numbers = all(one is None or _is_of_a_size(one) for one in told)
    members = event.get("members", [])
    names = [event.get("worker", ""), *(members if isinstance(members, list) else [None])]
    return numbers and all(isinstance(name, str) for name in names)
