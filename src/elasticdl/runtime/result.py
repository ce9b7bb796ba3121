"""What a job gives back."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from upath import UPath

__all__ = ["Result"]


@dataclass(frozen=True)
class Result:
    """The outcome of a training, an evaluation or a prediction. Shows itself well in a notebook.

    Attributes:
      command: train, evaluate or predict; of an experiment run or check too.
      status: completed, stopped (by a callback or max_step), interrupted (Ctrl-C) or preempted (SIGTERM); of a job
        that was sent to a cluster also submitted.
      steps: training steps that were run, over all epochs.
      history: for each epoch the loss and the validation metrics (`val_...`), as Keras has it.
      metrics: the last evaluation's metrics.
      test_metrics: those of an experiment's test data.
      records: the records that were predicted.
      num_predictions: how many predictions they made: others than records if the dataset function filters or repeats.
      predictions: what was predicted, as the model structures its outputs; None when it went elsewhere.
      output: the run directory, or where the predictions are.
      model_path: the trained model, None when there is none.
      seconds: how long it took.
      facts: what else there is to know, as (what, value).
      next_steps: commands to try next, as (what for, command).
      elsewhere: whether a cluster has run it, or is to: what came of it is there.
      text: what was asked for in the place of a run, such as a manifest; None when there was a run.
    """

    command: str
    status: str
    steps: int = 0
    history: dict[str, list[float]] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    test_metrics: dict[str, float] = field(default_factory=dict)
    records: int = 0
    num_predictions: int = 0
    predictions: Any = field(default=None, compare=False, repr=False)
    output: Path | UPath | None = None
    model_path: Path | UPath | None = None
    seconds: float = 0.0
    facts: tuple[tuple[str, str], ...] = ()
    next_steps: tuple[tuple[str, str], ...] = ()
    text: str | None = None
    elsewhere: bool = False

    @property
    def rows(self) -> list[tuple[str, str]]:
        """The summary, as pairs of a name and a value."""
        if self.elsewhere:
            took = [("time", f"{self.seconds:.1f} s")] if self.seconds else []
            return [("status", self.status), *took, *self.facts]
        rows = [("status", self.status), ("time", f"{self.seconds:.1f} s")]
        if self.command == "train" or self.steps:
            rows.insert(1, ("steps", f"{self.steps:,}"))
            if losses := self.history.get("loss"):
                rows.append(("training loss", f"{losses[-1]:.4f}"))
        rows += [(f"validation {name}", f"{value:.4f}") for name, value in self.metrics.items()]
        rows += [(f"test {name}", f"{value:.4f}") for name, value in self.test_metrics.items()]
        if self.command == "predict":
            made = (
                ""
                if self.num_predictions == self.records
                else f", {self.num_predictions:,} predictions"
            )
            rows.insert(1, ("records", f"{self.records:,}{made}"))
        if self.output is not None:
            what = "predictions" if self.command == "predict" else "run directory"
            rows.append((what, str(self.output)))
        if self.model_path is not None:
            rows.append(("trained model", str(self.model_path)))
        return [*rows, *self.facts]

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.rows)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in self.rows)

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td style='text-align:left'>{html.escape(value)}</td></tr>"
            for name, value in self.rows
        )
        return f"<table>{cells}</table>"
