"""A run in full: configuration, artifacts with their sizes, commands to copy, links."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from typing import Any

from upath import UPath

from elasticdl.artifacts.run_directory import RunDirectory
from elasticdl.errors import ElasticDLError
from elasticdl.job.config import JobConfig
from elasticdl.runtime.dashboard.config_view import config_rows
from elasticdl.runtime.dashboard.files import Entry, entries, read_bytes
from elasticdl.runtime.dashboard.hiding import hide, hide_texts
from elasticdl.runtime.dashboard.logs_view import log_names
from elasticdl.runtime.dashboard.model_summary import model_summary
from elasticdl.runtime.dashboard.run_view import run_view
from elasticdl.runtime.dashboard.runs import Run
from elasticdl.runtime.dashboard.timeline import goodput
from elasticdl.runtime.jobs.account import DONE, RUNNING
from elasticdl.runtime.jobs.jobs import Steps
from elasticdl.runtime.jobs.run_directories import RunDirectories
from elasticdl.runtime.next_steps import next_steps
from elasticdl.tracking.mlflow_address import shown

__all__ = ["REPORT", "detail_view"]

REPORT = "report.html"
_KINDS = {
    "model": "model",
    "model_last": "model",
    "exported": "model",
    "checkpoints": "checkpoints",
    "tensorboard": "curves",
    "plots": "plots",
    "logs": "logs",
    "report.html": "report",
    "job.json": "config",
    "config.yaml": "config",
    "events.jsonl": "events",
    "master.jsonl": "events",
}
MOST_FILES = 10_000


def detail_view(run: Run) -> dict[str, Any]:
    """All that is told of one run but its curves, workers, events and logs."""
    return {
        **run_view(run),
        "config": config_rows(run.job),
        "model_summary": _tried(lambda: model_summary(run)),
        "artifacts": hide_texts(artifacts(run)),
        "commands": commands(run),
        "links": links(run),
        "report": {"url": f"/api/runs/{run.id}/report/{REPORT}"} if REPORT in run.found else None,
        "logs": [{"name": n, "bytes": one.bytes} for n, one in _logs(run).items()],
        "goodput": goodput(run.digest),
        "problems": hide_texts(run.problems),
    }


def artifacts(run: Run) -> list[dict[str, Any]]:
    """What is in the run's directory, with the sizes of whole directories."""
    told = [one for name, one in sorted(run.found.items()) if not name.startswith(".")]
    return [
        {
            "name": one.name + ("/" if one.is_directory else ""),
            "path": str(run.path / one.name),
            "kind": _KINDS.get(one.name, "directory" if one.is_directory else "file"),
            "bytes": _size(run, run.path / one.name, one),
            "modified": one.modified,
        }
        for one in told
    ]


def commands(run: Run) -> list[dict[str, str]]:
    """What to do with it next, ready to copy."""
    told = _tried(lambda: _next_steps(run)) or ()
    steps = [step for step in told if not step[1].startswith("tensorboard ")]  # is among the links
    where = shlex.quote(run.address)
    if run.is_live:
        steps = [
            ("follow its log", f"elasticdl jobs logs {where} --follow"),
            ("stop it with a checkpoint", f"elasticdl jobs stop {where}"),
        ]
        if run.account.wanted is not None:
            steps.append(
                ("change the number of workers", f"elasticdl scale {where} --num_workers=2")
            )
    model = next((name for name in ("model", "exported") if name in run.found), None)
    if model is not None:
        path = shlex.quote(str(run.path / model))
        steps.append(("see what the model is", f"elasticdl model show {path}"))
    return [{"purpose": purpose, "command": hide(command)} for purpose, command in steps]


def _next_steps(run: Run) -> Steps:
    """Of the job.json that was read with care: `RunDirectories` would follow a link that leads out."""
    status = run.account.status
    if status == RUNNING or run.account.command == "run":
        return RunDirectories().next_steps(run.account)
    config = JobConfig.from_json(dict(run.job))
    return next_steps(
        config, RunDirectory(run.address), status if status in DONE else "interrupted"
    )


def links(run: Run) -> list[dict[str, str]]:
    """Other places where the run can be looked at."""
    curves = run.job.get("tensorboard_log_dir")
    folder = "logs" if run.is_experiment else "tensorboard"
    found = []
    if curves or folder in run.found:
        logdir = shlex.quote(str(curves or run.path / folder))
        found.append({"name": "TensorBoard", "command": f"tensorboard --logdir={logdir}"})
    masked: list[dict[str, str]] = hide_texts([*found, *(_tried(lambda: _mlflow(run)) or ())])
    return masked


def _mlflow(run: Run) -> list[dict[str, str]]:
    if "mlflow.json" not in run.found:
        return []
    state = json.loads(read_bytes(run.path / "mlflow.json", run.root, 0, 1 << 20))
    address, id = str(state["address"]), str(state.get("run_id") or "")
    if "@" in address:  # with a password, perhaps
        return []
    if address.startswith(("http://", "https://")):
        return [{"name": "MLflow", "url": shown(address)}]
    command = f"mlflow ui --backend-store-uri={shlex.quote(address)}"
    return [{"name": f"MLflow (run {id})" if id else "MLflow", "command": command}]


def _logs(run: Run) -> dict[str, Entry]:
    return _tried(lambda: log_names(run)) or {}


def _size(run: Run, path: UPath, entry: Entry) -> int | None:
    if not entry.is_directory:
        return entry.bytes
    size: int | None = _tried(lambda: _sum(run, path))
    return size


def _sum(run: Run, top: UPath) -> int:
    total, seen, waiting = 0, 0, [top]
    while waiting and seen < MOST_FILES:
        here = waiting.pop()
        for one in entries(here, run.root).values():
            seen += 1
            if one.is_link:  # may lead back to where it is
                continue
            if one.is_directory:
                waiting.append(here / one.name)
            else:
                total += one.bytes
    return total


def _tried(get: Callable[[], Any]) -> Any:
    """What it gives; None where the files are not as they should be: the rest is shown."""
    try:
        return get()
    except (
        ElasticDLError,
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
    ):
        return None
