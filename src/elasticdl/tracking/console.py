"""What a person sees while a run goes on: a progress bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any, TextIO

from elasticdl.tracking import words
from elasticdl.tracking.events import EventSink
from elasticdl.tracking.group_changes import GroupChanges
from elasticdl.tracking.live import LiveProgress
from elasticdl.tracking.terminal import WhileSeen
from elasticdl.tracking.throttle import Throttle

__all__ = ["LiveProgress", "OnlyWarnings", "PlainProgress", "make_progress"]

PLAIN_EVERY_S = 10.0


def make_progress(log_level: str) -> list[EventSink]:
    """The display that suits the log level and the standard error stream."""
    if log_level == "ERROR":
        return []
    if log_level == "WARNING":
        return [WhileSeen(OnlyWarnings(sys.stderr))]
    is_terminal = sys.stderr.isatty()
    return [WhileSeen(LiveProgress(sys.stderr) if is_terminal else PlainProgress(sys.stderr))]


class OnlyWarnings:
    """What is suspicious, and nothing else."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def receive(self, event: Mapping[str, Any]) -> None:
        if event["event"] in ("warning", "worker_lost"):
            message = event["message"] if event["event"] == "warning" else words.lost(event)
            print(f"Warning: {message}", file=self._stream, flush=True)

    def close(self) -> None:
        pass


class PlainProgress:
    """One line now and then: for logs, CI and notebooks."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._epochs_told = Throttle()
        self._changes = GroupChanges()
        self._waiting = ""
        self._records = self._epochs = 0
        self._last = time.monotonic()

    def receive(self, event: Mapping[str, Any]) -> None:
        self._receive_of_workers(event)
        kind = event["event"]
        if kind == "run_started":
            self._records, self._epochs = event.get("records", 0), event.get("num_epochs", 1)
        elif kind == "progress" and time.monotonic() - self._last > PLAIN_EVERY_S:
            done = 100 * min(1.0, event["examples"] / max(1, self._records))
            self._say(
                f"epoch {event['epoch'] + 1}/{self._epochs} {done:.0f}%  step {event['step']}  "
                f"loss {event['loss']:.4f}  {event['examples_per_s']:,.0f} examples/s{words.workers(event)}"
            )
        elif kind == "prediction_progress" and time.monotonic() - self._last > PLAIN_EVERY_S:
            done = 100 * min(1.0, event["records"] / max(1, event["total"]))
            self._say(f"predicted {event['records']:,} of {event['total']:,} records  {done:.0f}%")
        elif kind == "epoch" and self._epochs_told.is_worth_a_line(event["epoch"], self._epochs):
            self._say(f"epoch {event['epoch'] + 1}/{self._epochs} done  {words.numbers(event)}")
        elif kind == "evaluation" and event["occasion"] != "epoch":  # the epoch's line has it
            self._say(f"evaluation at step {event['step']}  {words.numbers(event['metrics'])}")
        elif kind == "checkpoint" and event["occasion"] != "epoch":  # the epoch has its line
            self._say(f"checkpoint at step {event['step']}: {event['path']}")
        elif kind == "exported":
            self._say(words.exported(event))
        elif kind == "warning":
            self._say(f"Warning: {event['message']}")

    def _receive_of_workers(self, event: Mapping[str, Any]) -> None:
        kind = event["event"]
        change = self._changes.heard(event)
        if change is not None:
            self._say(words.changed(change))
        elif kind == "waiting" and event["message"] != self._waiting:
            self._say(f"{event['message']} ...")
        elif kind in words.OF_WORKERS:
            self._say(words.OF_WORKERS[kind](event))
        if kind in ("waiting", "run_started"):
            self._waiting = event.get("message", "")

    def close(self) -> None:
        pass

    def _say(self, line: str) -> None:
        self._last = time.monotonic()
        print(line, file=self._stream, flush=True)
