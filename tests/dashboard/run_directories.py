"""Run directories as trainings leave them, written event by event, and a real server that tells of them."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from elasticdl.runtime.dashboard.serve import Dashboard

Event = dict[str, Any]
BEGUN = 1_790_000_000.0


def line(event: Mapping[str, Any]) -> str:
    return json.dumps(event, separators=(",", ":")) + "\n"


def write_run(
    directory: Path, events: Iterable[Mapping[str, Any]], job: Mapping[str, Any] | None = None
) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    job = {"command": "train", "model_def": "mnist.custom_model", **(job or {})}
    (directory / "job.json").write_text(json.dumps(job))
    (directory / "events.jsonl").write_text("".join(map(line, events)))
    return directory


def append(directory: Path, *events: Mapping[str, Any]) -> None:
    with (directory / "events.jsonl").open("a") as file:
        file.writelines(map(line, events))


def started(time: float = BEGUN, **more: Any) -> Event:
    about = {"command": "train", "job": "mnist", "model": "custom_model", "records": 640}
    return {"time": time, "event": "run_started", **about, "num_epochs": 2, "step": 0, **more}


def step(n: int, loss: float | None = None, **more: Any) -> Event:
    value = 1.0 / n if loss is None else loss
    told = {"step": n, "epoch": 0, "loss": value, "examples_per_s": 64.0}
    return {"time": BEGUN + n, "event": "step", **told, **more}


def evaluation(n: int, **metrics: float) -> Event:
    told = {"step": n, "occasion": "steps", "examples": 10, "seconds": 0.5, "metrics": metrics}
    return {"time": BEGUN + n, "event": "evaluation", **told}


def ended(n: int, status: str = "completed", **more: Any) -> Event:
    return {"time": BEGUN + n, "event": "run_ended", "status": status, "step": n, **more}


def joined(n: int, worker: str) -> Event:
    about = {"worker": worker, "pid": 100 + n, "node": "abc"}
    return {"time": BEGUN + n, "event": "worker_joined", **about}


def lost(n: int, worker: str, reason: str = "its process was killed or crashed") -> Event:
    return {"time": BEGUN + n, "event": "worker_lost", "worker": worker, "reason": reason}


def formed(n: int, *members: str, stall_s: float = 0.5, redone: int = 0) -> Event:
    told = {"members": list(members), "step": n, "redone": redone, "stall_s": stall_s}
    return {"time": BEGUN + n, "event": "group_formed", **told}


def audit(n: int, epoch: int) -> Event:
    told = {"epoch": epoch, "records": 640, "examples": 640, "applied_once": True}
    return {"time": BEGUN + n, "event": "epoch_audit", **told}


def whole_run() -> list[Event]:
    """A run of two workers that loses one of them, and ends."""
    return [
        joined(0, "worker-0"),
        joined(0, "worker-1"),
        started(),
        formed(1, "worker-0", "worker-1"),
        *(step(n) for n in range(2, 10)),
        evaluation(9, loss=0.5, accuracy=0.8),
        lost(10, "worker-1"),
        formed(12, "worker-0", stall_s=2.0, redone=1),
        *(step(n) for n in range(13, 21)),
        audit(20, 0),
        {
            "time": BEGUN + 20,
            "event": "epoch",
            "epoch": 0,
            "step": 20,
            "loss": 0.3,
            "val_loss": 0.5,
        },
        evaluation(20, loss=0.4, accuracy=0.7),
        {"time": BEGUN + 20, "event": "warning", "message": "Look out."},
        ended(21),
    ]


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.body)


def get(
    dashboard: Dashboard,
    path: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Ask for exactly this path: a client that is too helpful would mend it."""
    where = urlsplit(dashboard.url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=30)
    try:
        given = dict(headers or {})
        connection.putrequest(method, path, skip_host="Host" in given)
        for name, value in given.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        told = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, told, answer.read())
    finally:
        connection.close()


def only_run(dashboard: Dashboard) -> dict[str, Any]:
    (run,) = get(dashboard, "/api/runs").data["runs"]
    return dict(run)
