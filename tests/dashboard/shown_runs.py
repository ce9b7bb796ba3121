"""Run directories for the page's tests, written by hand: runs that ended, one that goes on, one with a hostile name."""

from __future__ import annotations

import json
import math
import os
import time
from pathlib import Path
from typing import Any

from upath import UPath

from elasticdl.artifacts.hold import Hold

Event = dict[str, Any]

HOSTILE = "<img src=x onerror=document.title='hacked'>"
TASKS = 40


def append(run: Path, *events: Event) -> None:
    with (run / "events.jsonl").open("a") as out:
        out.writelines(json.dumps(event) + "\n" for event in events)


def train_events(
    begun: float, *, steps: int = 300, pace: float = 0.4, rate: float = 60.0, epochs: int = 3
) -> list[Event]:
    """A training whose loss falls, with an evaluation at each epoch's end."""
    told: list[Event] = [
        {
            **{"time": begun, "event": "run_started", "command": "train", "job": "digits"},
            **{
                "model": "custom_model",
                "records": 1437,
                "num_epochs": epochs,
                "step": 0,
                "seed": 7,
            },
        }
    ]
    for step in range(5, steps + 1, 5):
        now = begun + step * pace
        epoch = (step - 1) * epochs // steps
        told.append(step_event(now, step, epoch, rate))
        if step % (steps // epochs) == 0:
            accuracy = 1 - 0.9 * math.exp(-step / rate / 2)
            metrics = {"loss": math.exp(-step / rate) + 0.12, "accuracy": accuracy}
            told += [
                {
                    **{"time": now + 0.1, "event": "evaluation", "step": step, "occasion": "epoch"},
                    **{"examples": 360, "seconds": 0.4, "metrics": metrics},
                },
                {
                    **{"time": now + 0.2, "event": "epoch_audit", "epoch": epoch},
                    **{"records": 1437, "examples": 1437, "applied_once": True},
                },
                {
                    **{"time": now + 0.3, "event": "epoch", "epoch": epoch, "step": step},
                    **{"loss": math.exp(-step / rate) + 0.1, "val_accuracy": accuracy},
                },
            ]
    return told


def step_event(now: float, step: int, epoch: int, rate: float = 60.0) -> Event:
    noise = 0.06 * math.sin(step * 1.7) + 0.04 * math.sin(step * 0.61)
    done = step % TASKS
    return {
        **{"time": now, "event": "step", "step": step, "epoch": epoch},
        "loss": 2.2 * math.exp(-step / rate) + 0.1 + abs(noise),
        "examples_per_s": 2400 + 300 * math.sin(step / 9),
        "tasks": {"todo": TASKS - done - 2, "leased": 2, "done": done, "redone": 1},
        "by_worker": {"worker-0": 620, "worker-1": 580, "worker-2": 600},
    }


def write(run: Path, events: list[Event], **job: Any) -> Path:
    run.mkdir(parents=True)
    asked = {
        **{"command": "train", "model_zoo": "model_zoo", "model_def": "mnist.digits.custom_model"},
        **{"training_data": "digits/train", "num_epochs": 3, "minibatch_size": 64, "seed": 7},
    }
    (run / "job.json").write_text(json.dumps(asked | job))
    append(run, *events)
    return run


def ended(events: list[Event], status: str = "completed", **more: Any) -> list[Event]:
    last = events[-1]
    told = {"reason": status, "step": last.get("step")} if status != "failed" else {}
    end = {"time": last["time"] + 1, "event": "run_ended", "status": status}
    return [*events, {**end, **told, **more}]


def elastic_events(begun: float) -> list[Event]:
    """Two workers train; a third joins; the second is lost."""
    first, *rest = train_events(begun + 1, steps=600, pace=0.3, rate=150, epochs=5)
    return [
        first,
        joined(begun + 2, 0),
        joined(begun + 2.5, 1),
        formed(begun + 3, [0, 1], 0),
        *(event for event in rest if event["time"] < begun + 50),
        joined(begun + 51, 2),
        formed(begun + 52, [0, 1, 2], 160, 1.3),
        *(event for event in rest if begun + 53 < event["time"] < begun + 110),
        lost(begun + 111, 1),
        formed(begun + 116, [0, 2], 360, 5.2, redone=1),
        *(event for event in rest if begun + 117 < event["time"] < begun + 140),
    ]


def joined(now: float, worker: int) -> Event:
    name = f"worker-{worker}"
    node = f"b9d137bf10f02bdd9b3e2ee15b4{worker}"
    return {
        "time": now,
        "event": "worker_joined",
        "worker": name,
        "pid": 4100 + worker,
        "node": node,
    }


def lost(now: float, worker: int) -> Event:
    reason = "its process was killed or crashed"
    return {"time": now, "event": "worker_lost", "worker": f"worker-{worker}", "reason": reason}


def formed(
    now: float, workers: list[int], step: int, stall_s: float = 0.8, redone: int = 0
) -> Event:
    members = [f"worker-{worker}" for worker in workers]
    told = {"members": members, "step": step, "redone": redone, "stall_s": stall_s}
    return {"time": now, "event": "group_formed", **told}


class ShownRuns:
    """A directory of runs. The one that goes on is held by this process, as a training would."""

    def __init__(self, root: Path) -> None:
        now = time.time()
        self.root = root
        wide = ended(train_events(now - 7200))
        self.wide = write(root / "digits-wide", wide, minibatch_size=128, learning_rate=0.01)
        narrow = ended(train_events(now - 3600, rate=110))
        self.narrow = write(root / "digits-narrow", narrow, learning_rate=0.001)
        (self.wide / "model").mkdir()
        (self.wide / "model" / "params.safetensors").write_bytes(bytes(1_400_000))
        (self.wide / "tensorboard").mkdir()
        (self.wide / "report.html").write_text("<!doctype html><title>r</title><h1>Validation</h1>")
        failed = train_events(now - 1800, steps=150)[:20]
        why = "NonFiniteLoss: The loss became inf at step 100."
        warned = {
            "time": now - 1700,
            "event": "warning",
            "message": "A <b>checkpoint</b> is broken.",
        }
        self.failed = write(root / "digits-failed", ended([*failed, warned], "failed", error=why))
        with (self.failed / "events.jsonl").open("a") as out:
            out.write('{"time": 17, "ev\n{"time": 17, "event": "st')  # it was killed while it wrote
        self.hostile = write(root / HOSTILE, ended(train_events(now - 900)), job_name=HOSTILE)
        self._write_elastic(now)

    def _write_elastic(self, now: float) -> None:
        strategy = {"distribution_strategy": "AllreduceStrategy", "num_workers": "2:4"}
        self.live = write(
            self.root / "elastic", elastic_events(now - 141), num_epochs=5, **strategy
        )
        (self.live / "logs").mkdir()
        for worker in range(3):
            text = "".join(f"step {step}: all is well\n" for step in range(40))
            (self.live / "logs" / f"worker-{worker}.log").write_text(
                text + "<script>alert(1)</script>\n"
            )
        self.hold = Hold(UPath(self.live))
        self.hold.take()
        self.step = 460

    def go_on(self, steps: int = 10) -> int:
        """The live run takes some steps; the step that it is at then."""
        for _ in range(0, steps, 5):
            self.step += 5
            append(self.live, step_event(time.time(), self.step, 3, 150))
        return self.step

    def close(self) -> None:
        if os.path.isdir(self.live):
            self.hold.release()
