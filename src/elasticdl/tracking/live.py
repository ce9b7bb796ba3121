"""A run on a terminal: a progress bar, and lines above it for what stays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

from elasticdl.tracking import words
from elasticdl.tracking.group_changes import GroupChanges
from elasticdl.tracking.throttle import Throttle

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID
    from rich.status import Status

__all__ = ["LiveProgress"]


class LiveProgress:
    """A bar with epoch, step, loss, examples a second and the time left."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console

        self._console: Console = Console(file=stream)
        self._bar: Progress | None = None
        self._training: TaskID | None = None
        self._evaluation: TaskID | None = None
        self._epochs_told = Throttle()
        self._changes = GroupChanges()
        self._status: Status | None = None
        self._records = self._epochs = 0

    def receive(self, event: Mapping[str, Any]) -> None:
        change = self._changes.heard(event)
        if change is not None:
            self._print(words.changed(change))
        elif event["event"] in words.OF_WORKERS:
            self._print(words.OF_WORKERS[event["event"]](event))
        handler = getattr(self, f"_on_{event['event']}", None)
        if handler is not None:
            handler(event)

    def close(self) -> None:
        for shown in (self._status, self._bar):
            if shown is not None:
                shown.stop()
        self._status = self._bar = self._training = self._evaluation = None

    def _on_waiting(self, event: Mapping[str, Any]) -> None:
        """What takes its time before there is anything to count."""
        message = f"{event['message']} ..."
        if self._bar is not None and self._training is not None:
            self._bar.update(self._training, note=message)
        elif self._status is None:
            self._status = self._console.status(message)
            self._status.start()
        else:
            self._status.update(message)

    def _on_run_started(self, event: Mapping[str, Any]) -> None:
        from rich.progress import (
            BarColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        self.close()  # what waited; or, when all workers were lost, what was shown before
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
            f"{event['examples_per_s']:,.0f}/s{words.workers(event)}",
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
            self._print(f"evaluation at step {event['step']}  {words.numbers(event['metrics'])}")

    def _on_epoch(self, event: Mapping[str, Any]) -> None:
        if self._epochs_told.is_worth_a_line(event["epoch"], self._epochs):
            self._print(f"epoch {event['epoch'] + 1}/{self._epochs} done  {words.numbers(event)}")

    def _on_checkpoint(self, event: Mapping[str, Any]) -> None:
        if event["occasion"] != "epoch":
            self._print(f"checkpoint at step {event['step']}: {event['path']}")

    def _on_exported(self, event: Mapping[str, Any]) -> None:
        self._print(words.exported(event))

    def _on_warning(self, event: Mapping[str, Any]) -> None:
        self._print(f"Warning: {event['message']}")

    def _print(self, line: str) -> None:
        (self._bar.console if self._bar else self._console).print(
            line, markup=False, highlight=True
        )
