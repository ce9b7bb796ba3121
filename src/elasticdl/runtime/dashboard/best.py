"""Which value of which metric is the best. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from elasticdl.reports.worst import more_is_worse
from elasticdl.runtime.dashboard.digest import Digest
from elasticdl.runtime.dashboard.series import lasting

__all__ = ["best", "best_of", "mode_of"]


def best(job: Mapping[str, Any], digest: Digest) -> dict[str, Any] | None:
    """The best value of the metric that matters: `--export_metric`, else the first that is no loss, else the loss."""
    key = _metric(job, digest)
    if key is None:
        return None
    asked = job.get("export_mode")
    mode = str(asked) if asked in ("min", "max") else mode_of(key)
    steps, _, values = digest.curves[key].arrays()
    counts = lasting(steps)  # what a resumed run has undone is no result
    steps, values = steps[counts], values[counts]
    at = int(np.argmin(values) if mode == "min" else np.argmax(values))
    return {"metric": key, "value": float(values[at]), "step": int(steps[at]), "mode": mode}


def mode_of(metric: str) -> str:
    """`min` or `max`, by its name.

    >>> mode_of("val_accuracy"), mode_of("loss"), mode_of("val_mae")
    ('max', 'min', 'min')
    """
    return "min" if more_is_worse(metric.removeprefix("val_")) else "max"


def best_of(metric: str, values: Sequence[float | None]) -> int | None:
    """Which of several values is the best; None where fewer than two are known or all are the same."""
    known = [(value, n) for n, value in enumerate(values) if value is not None]
    if len(known) < 2 or len({value for value, _ in known}) < 2:
        return None
    chosen = min if mode_of(metric) == "min" else max
    return chosen(known, key=lambda one: one[0])[1]


def _metric(job: Mapping[str, Any], digest: Digest) -> str | None:
    evaluated = [key for key in digest.curves if key.startswith("val_")]
    asked = f"val_{str(job.get('export_metric') or '').removeprefix('val_')}"
    told = str((digest.exported or {}).get("metric") or "")
    wanted = [key for key in (asked, told) if key in digest.curves]
    metrics = [key for key in evaluated if key != "val_loss"]
    trained = [key for key in ("val_loss", "loss") if key in digest.curves]
    return next(iter([*wanted, *metrics, *trained]), None)
