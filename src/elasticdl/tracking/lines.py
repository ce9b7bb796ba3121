"""The events of a run as lines of a log, to be read later or by somebody else than who started it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any

from elasticdl.tracking import words
from elasticdl.tracking.group_changes import GroupChanges

__all__ = ["EventLines"]

Event = Mapping[str, Any]
_OF_ANOTHER_FORM = (AttributeError, KeyError, OSError, OverflowError, TypeError, ValueError)


class EventLines:
    """Told of every event in order, answers with a line where there is something to say.

    >>> EventLines().line({"time": 0.0, "event": "warning", "message": "Look out."})[20:]
    'Warning: Look out.'
    """

    def __init__(self) -> None:
        self._changes = GroupChanges()
        self._epochs = "?"

    def line(self, event: Event) -> str | None:
        try:
            said = self._said(event)
            return said and f"{_moment(event)} {said}"
        except _OF_ANOTHER_FORM:  # written by another version, or by hand
            return None

    def _said(self, event: Event) -> str | None:
        kind = event["event"]
        change = self._changes.heard(event)
        if change is not None:
            return words.changed(change)
        if kind in words.OF_WORKERS:
            return words.OF_WORKERS[kind](event)
        if kind == "run_started":
            self._epochs = str(event.get("num_epochs", "?"))
        if kind in ("step", "epoch"):
            return f"epoch {event['epoch'] + 1}/{self._epochs}  {_LINES[kind](event)}"
        return _LINES[kind](event) if kind in _LINES else None


def _moment(event: Event) -> str:
    seconds = event.get("time")
    if isinstance(seconds, int | float):
        with contextlib.suppress(OverflowError, OSError, ValueError):  # of no clock of this world
            return time.strftime("%F %T", time.localtime(seconds))
    return "????-??-?? ??:??:??"


def _started(event: Event) -> str:
    at = f" at step {event['step']}" if event.get("step") else ""
    data = f", {words.count(event['records'], 'record')}" if "records" in event else ""
    model = f" with {event['model']}" if "model" in event else ""
    return f"{event['command']} {event['job']} begins{at}{model}{data}"


def _step(event: Event) -> str:
    speed = event.get("examples_per_s")
    tail = f"  {speed:,.0f} examples/s" if speed is not None else ""
    loss = "not a number" if event["loss"] is None else f"{event['loss']:.4f}"
    return f"step {event['step']}  loss {loss}{tail}"


def _ended(event: Event) -> str:
    if event["status"] == "failed":
        return f"failed: {event.get('error', 'nobody said why')}"
    return f"{event['status']} at step {event['step']}"


def _bad_task(event: Event) -> str:
    return (
        f"left out records {event['start']} to {event['end']} of {event['shard']}: reading them failed "
        f"{event['tries']} times"
    )


_LINES: dict[str, Callable[[Event], str]] = {
    "run_started": _started,
    "step": _step,
    "epoch": lambda event: f"done  {words.numbers(event)}",
    "evaluation": lambda e: f"evaluation at step {e['step']}  {words.numbers(e['metrics'])}",
    "checkpoint": lambda event: f"checkpoint at step {event['step']}: {event['path']}",
    "exported": words.exported,
    "report": lambda event: f"report on {event['name']}  {words.numbers(event['metrics'])}",
    "bad_task": _bad_task,
    "warning": lambda event: f"Warning: {event['message']}",
    "run_ended": _ended,
}
