"""Run directories written by hand: what is in them is what a run would write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from elasticdl.artifacts.run_directory import RunDirectory

Event = dict[str, Any]

TRAIN = {"command": "train", "model_def": "digits.model", "training_data": "train.csv"}
ELASTIC = {**TRAIN, "distribution_strategy": "AllreduceStrategy", "num_workers": "2:4"}


def started(time: float = 100.0, step: int = 0) -> Event:
    return {
        **{"time": time, "event": "run_started", "command": "train", "job": "digits"},
        **{"model": "custom_model", "records": 800, "num_epochs": 3, "step": step, "seed": 7},
    }


def step(time: float, step: int, epoch: int = 0, loss: float | None = 0.5) -> Event:
    return {
        **{"time": time, "event": "step", "step": step, "epoch": epoch},
        **{"loss": loss, "examples_per_s": 1234.5},
    }


def ended(time: float, status: str = "completed", **more: Any) -> Event:
    told = {"error": "ValueError: no"} if status == "failed" else {"reason": status, "step": 75}
    return {"time": time, "event": "run_ended", "status": status, **told, **more}


def joined(time: float, worker: int) -> Event:
    name = f"worker-{worker}"
    return {"time": time, "event": "worker_joined", "worker": name, "pid": 7, "node": "n"}


def formed(time: float, *workers: int, step: int = 0, stall_s: float = 0.5) -> Event:
    members = [f"worker-{worker}" for worker in workers]
    return {
        **{"time": time, "event": "group_formed", "members": members},
        **{"step": step, "redone": 0, "stall_s": stall_s},
    }


def lost(time: float, worker: int) -> Event:
    reason = "its process was killed or crashed"
    return {"time": time, "event": "worker_lost", "worker": f"worker-{worker}", "reason": reason}


def lines(*events: Event) -> str:
    return "".join(json.dumps(event) + "\n" for event in events)


def write_run(
    where: str | Path, *events: Event, job: dict[str, Any] | None = TRAIN
) -> RunDirectory:
    directory = RunDirectory(str(where))
    directory.path.mkdir(parents=True, exist_ok=True)
    if job is not None:
        directory.job.write_text(json.dumps(job))
    directory.events.write_text(lines(*events))
    return directory
