"""Curves for a chart: as many points as it can show, with every spike. Pure."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from elasticdl.runtime.dashboard.columns import Points
from elasticdl.runtime.dashboard.digest import Digest

__all__ = ["lasting", "series"]

Numbers = NDArray[np.float64]
FEWEST, MOST = 10, 20_000
_KINDS = {"loss": "loss", "val_loss": "loss", "examples_per_s": "speed", "workers": "workers"}
_LABELS = {"loss": "loss", "examples_per_s": "examples a second", "workers": "workers"}


def series(
    digest: Digest,
    *,
    points: int = 1000,
    start: float | None = None,
    end: float | None = None,
    x: str = "step",
) -> list[dict[str, Any]]:
    """The curves of a run.

    Args:
      points: about how many of each curve.
      start, end: only this part, in steps or in seconds since 1970.
      x: `step` leaves out what was done again after a checkpoint was gone back to; `time` shows all.
    """
    points = min(max(points, FEWEST), MOST)
    return [
        {
            "key": key,
            "label": _label(key),
            "kind": _KINDS.get(key, "metric"),
            "points": _chosen(curve, points, start, end, x),
            "total": len(curve),
        }
        for key, curve in digest.curves.items()
    ]


def _label(key: str) -> str:
    if key in _LABELS:
        return _LABELS[key]
    return f"validation {key.removeprefix('val_')}" if key.startswith("val_") else key


def _chosen(
    curve: Points, points: int, start: float | None, end: float | None, x: str
) -> list[list[float]]:
    steps, times, values = curve.arrays()
    keep = lasting(steps) if x == "step" else np.ones(len(steps), dtype=bool)
    along = steps if x == "step" else times
    keep &= (along >= (-np.inf if start is None else start)) & (
        along <= (np.inf if end is None else end)
    )
    steps, times, values = steps[keep], times[keep], values[keep]
    taken = sampled(values, points)
    return [
        [step, round(time, 3), value]
        for step, time, value in zip(
            steps[taken].tolist(), times[taken].tolist(), values[taken].tolist(), strict=True
        )
    ]


def lasting(steps: Numbers) -> NDArray[np.bool_]:
    """Which points no later one has gone back behind."""
    if not len(steps):
        return np.ones(0, dtype=bool)
    later = np.minimum.accumulate(steps[::-1])[::-1]
    lasts = np.ones(len(steps), dtype=bool)
    lasts[:-1] = steps[:-1] < later[1:]
    return lasts


def sampled(values: Numbers, points: int) -> NDArray[np.int64]:
    """Which values to show: the first, the last, and the least and the largest of each of equal parts."""
    total = len(values)
    if total <= points:
        return np.arange(total)
    bounds = np.linspace(1, total - 1, max(1, points // 2 - 1) + 1).astype(int)
    taken = {0, total - 1}
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        if end > begin:
            part = values[begin:end]
            taken |= {begin + int(part.argmin()), begin + int(part.argmax())}
    return np.array(sorted(taken))
