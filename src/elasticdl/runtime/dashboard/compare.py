"""Several runs side by side: their configurations with the differences marked, and who is best. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from elasticdl.runtime.dashboard.best import best_of
from elasticdl.runtime.dashboard.config_view import config_rows
from elasticdl.runtime.dashboard.run_view import run_view
from elasticdl.runtime.dashboard.runs import Run

__all__ = ["compare"]

_OF_EACH = ("output", "command", "resume", "overwrite", "job_name")
"""Differ between any two runs and say nothing: they come last."""


def compare(runs: Sequence[Run]) -> dict[str, Any]:
    """The runs, in the order given."""
    views = [run_view(run) for run in runs]
    return {"runs": views, "config": _config(runs), "metrics": _metrics(views)}


def _config(runs: Sequence[Run]) -> list[dict[str, Any]]:
    each = [{row["key"]: row["value"] for row in config_rows(run.job)} for run in runs]
    given = {row["key"] for run in runs for row in config_rows(run.job) if not row["is_default"]}
    keys = [key for key in dict.fromkeys(k for one in each for k in one) if key in given]
    rows = []
    for key in keys:
        values = [one.get(key) for one in each]
        rows.append({"key": key, "values": values, "differs": len(set(values)) > 1})
    return sorted(rows, key=lambda row: (not row["differs"], row["key"] in _OF_EACH, row["key"]))


def _metrics(views: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    columns: dict[str, list[float | None]] = {}
    for n, view in enumerate(views):
        told = {"loss": view["loss"]} | {f"val_{k}": v for k, v in view["metrics"].items()}
        if view["best"]:
            told[f"best {view['best']['metric']}"] = view["best"]["value"]
        told |= {"examples_per_s": view["examples_per_s"], "duration_s": view["duration_s"]}
        for name, value in told.items():
            columns.setdefault(name, [None] * len(views))[n] = value
    known = {name: values for name, values in columns.items() if any(v is not None for v in values)}
    return [
        {"name": name, "values": values, "best": _best(name, values)}
        for name, values in known.items()
    ]


def _best(name: str, values: Sequence[float | None]) -> int | None:
    if name == "duration_s":
        return None  # a run that was cut short is no better for it
    return best_of(name.removeprefix("best "), values)
