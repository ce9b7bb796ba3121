"""What a person sees while a run goes on: a progress bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

__all__ = ["LiveProgress", "OnlyWarnings", "PlainProgress", "make_progress"]

PLAIN_EVERY_S = 10.0
MANY_EPOCHS = 50


def make_progress(log_level: str) -> list[LiveProgress | PlainProgress | OnlyWarnings]:
    """The display that suits the log level and the standard error stream."""
    if log_level == "ERROR":
        return []
    if log_level == "WARNING":
        return [OnlyWarnings(sys.stderr)]
    return [LiveProgress(sys.stderr) if sys.stderr.isatty() else PlainProgress(sys.stderr)]


class _Throttle:
    """Thousands of short epochs are not worth a line each."""

    def __init__(self) -> None:
        self._last = float("-inf")

    def is_worth_a_line(self, epoch: int, epochs: int) -> bool:
        now = time.monotonic()
        worth = epochs <= MANY_EPOCHS or epoch + 1 == epochs or now - self._last >= 1
        if worth:
            self._last = now
        return worth


class OnlyWarnings:
    """What is suspicious, and nothing else."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def receive(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "warning":
            print(f"Warning: {event['message']}", file=self._stream, flush=True)

    def close(self) -> None:
        pass


class PlainProgress:
    """One line now and then: for logs, CI and notebooks."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._epochs_told = _Throttle()
        self._records = self._epochs = 0
        self._last = time.monotonic()

    def receive(self, event: Mapping[str, Any]) -> None:
        kind = event["event"]
        if kind == "run_started":
            self._records, self._epochs = event.get("records", 0), event.get("num_epochs", 1)
        elif kind == "progress" and time.monotonic() - self._last > PLAIN_EVERY_S:
            done = 100 * min(1.0, event["examples"] / max(1, self._records))
            self._say(
                f"epoch {event['epoch'] + 1}/{self._epochs} {done:.0f}%  step {event['step']}  "
                f"loss {event['loss']:.4f}  {event['examples_per_s']:,.0f} examples/s"
            )
        elif kind == "prediction_progress" and time.monotonic() - self._last > PLAIN_EVERY_S:
            done = 100 * min(1.0, event["records"] / max(1, event["total"]))
            self._say(f"predicted {event['records']:,} of {event['total']:,} records  {done:.0f}%")
        elif kind == "epoch" and self._epochs_told.is_worth_a_line(event["epoch"], self._epochs):
            self._say(f"epoch {event['epoch'] + 1}/{self._epochs} done  {_numbers(event)}")
        elif kind == "evaluation" and event["occasion"] != "epoch":  # the epoch's line has it
            self._say(f"evaluation at step {event['step']}  {_numbers(event['metrics'])}")
        elif kind == "checkpoint" and event["occasion"] != "epoch":  # the epoch has its line
            self._say(f"checkpoint at step {event['step']}: {event['path']}")
        elif kind == "exported":
            self._say(_exported(event))
        elif kind == "warning":
            self._say(f"Warning: {event['message']}")

    def close(self) -> None:
        pass

    def _say(self, line: str) -> None:
        self._last = time.monotonic()
        print(line, file=self._stream, flush=True)


class LiveProgress:
    """A bar with epoch, step, loss, examples a second and the time left."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console

        self._console: Console = Console(file=stream)
        self._bar: Progress | None = None
        self._training: TaskID | None = None
        self._evaluation: TaskID | None = None
        self._epochs_told = _Throttle()
        self._records = self._epochs = 0

    def receive(self, event: Mapping[str, Any]) -> None:
        handler = getattr(self, f"_on_{event['event']}", None)
        if handler is not None:
            handler(event)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _on_run_started(self, event: Mapping[str, Any]) -> None:
        from rich.progress import (
            BarColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        self._records, self._epochs = event.get("records", 0), event.get("num_epochs", 1)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[note]}", style="cyan"),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
        )
        self._bar.start()
        total = max(1, self._records * self._epochs)
        doing = {"train": "training", "predict": "predicting"}
        description = doing.get(event.get("command", ""), "starting")
        self._training = self._bar.add_task(description, total=total, note="")

    def _on_progress(self, event: Mapping[str, Any]) -> None:
        if self._bar is None or self._training is None:
            return
        epoch = event["epoch"]
        self._bar.update(
            self._training,
            description=f"epoch {epoch + 1}/{self._epochs}",
            completed=epoch * self._records + min(event["examples"], self._records),
            note=f"step {event['step']}  loss {event['loss']:.4f}  "
            f"{event['examples_per_s']:,.0f}/s",
        )

    def _on_evaluation_progress(self, event: Mapping[str, Any]) -> None:
        if self._bar is None:
            return
        if self._evaluation is None:
            self._evaluation = self._bar.add_task("evaluating", total=event["total"], note="")
        self._bar.update(self._evaluation, completed=event["records"])

    def _on_prediction_progress(self, event: Mapping[str, Any]) -> None:
        if self._bar is not None and self._training is not None:
            note = f"{event['records']:,} of {event['total']:,} records"
            self._bar.update(self._training, completed=event["records"], note=note)

    def _on_evaluation(self, event: Mapping[str, Any]) -> None:
        if self._bar is not None and self._evaluation is not None:
            self._bar.remove_task(self._evaluation)
        self._evaluation = None
        if event["occasion"] != "epoch":  # the epoch's own line has it
            self._print(f"evaluation at step {event['step']}  {_numbers(event['metrics'])}")

    def _on_epoch(self, event: Mapping[str, Any]) -> None:
        if self._epochs_told.is_worth_a_line(event["epoch"], self._epochs):
            self._print(f"epoch {event['epoch'] + 1}/{self._epochs} done  {_numbers(event)}")

    def _on_checkpoint(self, event: Mapping[str, Any]) -> None:
        if event["occasion"] != "epoch":
            self._print(f"checkpoint at step {event['step']}: {event['path']}")

    def _on_exported(self, event: Mapping[str, Any]) -> None:
        self._print(_exported(event))

    def _on_warning(self, event: Mapping[str, Any]) -> None:
        self._print(f"Warning: {event['message']}")

    def _print(self, line: str) -> None:
        (self._bar.console if self._bar else self._console).print(
            line, markup=False, highlight=True
        )


def _numbers(fields: Mapping[str, Any]) -> str:
    return "  ".join(
        f"{name} {value:.4f}"
        for name, value in fields.items()
        if isinstance(value, float) and name not in ("time",)
    )


def _exported(event: Mapping[str, Any]) -> str:
    if event["value"] is None:
        return f"exported to {event['path']}"
    chosen = f"epoch {event['epoch'] + 1}, {event['metric']} {event['value']:.4f}"
    return f"exported the best epoch ({chosen}) to {event['path']}"
