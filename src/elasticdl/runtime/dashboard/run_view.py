"""A run as a row of the list. Pure: a run that was read in, plain data out."""

from __future__ import annotations

import math
from typing import Any

from elasticdl.runtime.dashboard.best import best
from elasticdl.runtime.dashboard.hiding import hide, hide_texts
from elasticdl.runtime.dashboard.progress import progress
from elasticdl.runtime.dashboard.runs import Run
from elasticdl.runtime.dashboard.shortening import short

__all__ = ["run_view"]

NAME = 200
"""What is longer is no name."""


def run_view(run: Run) -> dict[str, Any]:
    """What the list of runs tells of one; the same numbers as `elasticdl jobs`."""
    account, digest = run.account, run.digest
    how_far = progress(account, run.job, digest)
    ended = account.ended
    until = digest.last_time if ended is None else ended
    started = account.started
    view = {
        "id": run.id,
        "version": run.version,
        "name": run.name,
        "where": run.address,
        "command": short(account.command, NAME),
        "status": short(account.status, NAME),
        "said": short(account.said, NAME),
        "message": _short(account.message),
        "model": _model(run),
        "is_live": run.is_live,
        "step": account.step,
        "epoch": account.epoch,
        "num_epochs": account.num_epochs,
        "total_steps": how_far.total_steps,
        "fraction": how_far.fraction,
        "eta_s": how_far.eta_s,
        "loss": finite(account.loss),
        "metrics": {name: finite(value) for name, value in account.metrics.items()},
        "best": best(run.job, digest),
        "started": started,
        "ended": ended,
        "updated": digest.last_time,
        "duration_s": None if started is None or until is None else max(0.0, until - started),
        "workers": list(account.workers),
        "num_workers": account.wanted,
        "examples_per_s": _speed(run),
        "warning": _short(account.warning),
        "num_problems": len(run.problems),
    }
    shown: dict[str, Any] = hide_texts(view)
    return shown


def finite(value: float | None) -> float | None:
    """JSON has no infinity."""
    return value if value is not None and math.isfinite(value) else None


def _model(run: Run) -> str | None:
    told = run.job.get("model_def") or run.job.get("model_builder_class")
    told = told or run.digest.started.get("model")
    return None if told is None else short(str(told), NAME)


def _short(text: str | None) -> str | None:
    return None if text is None else short(hide(text))  # half of an address hides nothing


def _speed(run: Run) -> float | None:
    curve = run.digest.curves.get("examples_per_s")
    return curve.last[2] if curve is not None else None
