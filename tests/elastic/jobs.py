"""Jobs with workers that tests start, follow by their events, and hurt."""

from __future__ import annotations

import collections
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import psutil

from elasticdl.data.recordio import RecordWriter
from elasticdl.tracking.events import read_events

NUM_FEATURES = 16
ZOO = Path(__file__).with_name("zoo")
PATIENCE_S = 150


def write_records(path: Path, num_records: int, *, seed: int = 0, num_files: int = 4) -> Path:
    """Records of 16 numbers and the class that a fixed matrix gives them."""
    rng = np.random.default_rng(seed)
    matrix = np.random.default_rng(77).normal(size=(NUM_FEATURES, 10))
    path.mkdir(parents=True)
    for number in range(num_files):
        with (path / f"part-{number}").open("wb") as file, RecordWriter(file) as writer:
            for _ in range(num_records // num_files):
                x = rng.normal(size=NUM_FEATURES)
                label = float((x @ matrix).argmax())
                writer.write(np.array([*x, label], np.float32).tobytes())
    return path


class Job:
    """`elasticdl train ...` in a process of its own, which is gone when the `with` is left."""

    def __init__(self, output: Path, *flags: str, env: dict[str, str] | None = None) -> None:
        self.output = output
        self.digests = output.with_name(f"{output.name}-digests")
        self.digests.mkdir(exist_ok=True)
        self._log = output.with_name(f"{output.name}.log").open("ab")
        words = [
            "train",
            f"--model_zoo={ZOO}",
            f"--output={output}",
            "--distribution_strategy=AllreduceStrategy",
            *flags,
        ]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "elasticdl", *words],
            env={**os.environ, "DIGESTS": str(self.digests), **(env or {})},
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self._log.close()

    @property
    def said(self) -> str:
        """What the command printed, and the end of each worker's log."""
        logs = [Path(self._log.name), *sorted(self.output.glob("logs/*"))]
        ends = (path.read_text(encoding="utf-8", errors="replace")[-2_000:] for path in logs)
        return "\n".join(f"--- {path.name}\n{end}" for path, end in zip(logs, ends, strict=True))

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        path = self.output / "events.jsonl"
        found = read_events(path) if path.exists() else []
        return [event for event in found if not kinds or event["event"] in kinds]

    @property
    def workers(self) -> dict[str, int]:
        """The members' processes, the leader's first."""
        alive: dict[str, int] = {}
        for event in self.events("worker_joined", "worker_lost", "worker_left"):
            if event["event"] == "worker_joined":
                alive[event["worker"]] = event["pid"]
            else:
                alive.pop(event["worker"], None)
        return dict(sorted(alive.items(), key=lambda item: int(item[0].split("-")[1])))

    @property
    def master(self) -> psutil.Process:
        (found,) = [p for p in self.descendants if "ray::Master" in " ".join(_words(p))]
        return found

    @property
    def descendants(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    @property
    def step(self) -> int:
        """How far the members that write down digests have come."""
        return max((step for step, _ in self.digests_by_step), default=0)

    def wait_until(self, condition: Callable[[], Any], what: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while not condition():
            assert self.process.poll() is None, f"ended before {what}:\n{self.said}"
            assert time.monotonic() < end, f"waited for {what} in vain:\n{self.said}"
            time.sleep(0.1)

    def wait_for_workers(self, number: int) -> None:
        def formed() -> bool:
            groups = self.events("group_formed")
            return bool(groups) and len(groups[-1]["members"]) == number

        self.wait_until(formed, f"{number} workers")

    def wait_for_steps(self, more: int) -> None:
        goal = self.step + more
        self.wait_until(lambda: self.step >= goal, f"step {goal}")

    def kill(self, names: Sequence[str], number: int = signal.SIGKILL) -> None:
        pids = self.workers
        for name in names:
            os.kill(pids[name], number)

    def end(self, code: int = 0) -> None:
        """Wait for its end, which must be this one; nothing that it started is left."""
        started = self.descendants if self.process.poll() is None else []
        assert self.process.wait(PATIENCE_S) == code, self.said
        _, alive = psutil.wait_procs(started, timeout=5)
        assert not alive, alive

    @property
    def digests_by_step(self) -> list[tuple[int, str]]:
        """What all members wrote: after so many steps, these weights."""
        lines = [line for path in self.digests.iterdir() for line in path.read_text().splitlines()]
        return [(int(step), digest) for step, _, digest in (line.partition(" ") for line in lines)]

    def check_replicas(self) -> int:
        """All members had the same weights after each step; returns how many steps several of them took."""
        by_step = collections.defaultdict(list)
        for step, digest in self.digests_by_step:
            by_step[step].append(digest)
        different = [step for step, digests in by_step.items() if len(set(digests)) > 1]
        assert not different, f"replicas differ after the steps {different[:5]}"
        return sum(len(digests) > 1 for digests in by_step.values())

    def forget_digests(self) -> None:
        """What comes now is another course of the training."""
        for path in self.digests.iterdir():
            path.unlink()

    def check_audits(self, records: int) -> int:
        """Every epoch that was ended applied every record once, whatever happened; returns how many were."""
        audits = {event["epoch"]: event for event in self.events("epoch_audit")}
        assert sorted(audits) == list(range(len(audits)))
        for audit in audits.values():
            assert audit["applied_once"] and audit["records"] == audit["examples"] == records
        return len(audits)


def _words(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def as_json(path: Path) -> Any:
    return json.loads(path.read_text())
