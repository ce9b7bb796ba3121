"""Jobs that the elastic benchmarks start, look at and hurt; and the same with Ray Train, for comparison."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from elasticdl.data.recordio import RecordWriter

ZOO = Path(__file__).with_name("elastic_zoo")
WINDOW_S = 150.0


def write_images(path: Path, count: int) -> Path:
    rng = np.random.default_rng(0)
    path.mkdir(parents=True)
    for number in range(4):
        with (path / f"part-{number}").open("wb") as file, RecordWriter(file) as writer:
            for _ in range(count // 4):
                pixels = rng.integers(0, 256, 28 * 28, dtype=np.uint8).tobytes()
                writer.write(pixels + bytes([rng.integers(10)]))
    return path


class Steps:
    """When each process of a job took its steps."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def times(self) -> list[float]:
        return sorted(
            float(line)
            for path in self.directory.iterdir()
            for line in path.read_text().splitlines()
            if line.count(".") == 1 and len(line) > 12
        )

    def processes(self) -> list[int]:
        return sorted(int(path.name) for path in self.directory.iterdir())

    def processes_alive(self) -> list[int]:
        return [pid for pid in self.processes() if Path(f"/proc/{pid}").exists()]

    def wait(self, after: float, count: int, patience_s: float = WINDOW_S) -> None:
        """Until so many steps were taken after a moment."""
        end = time.time() + patience_s
        while sum(t > after for t in self.times()) < count:
            if time.time() > end:
                raise TimeoutError(f"no {count} steps within {patience_s} s")
            time.sleep(0.2)

    def longest_gap(self, since: float, until: float) -> float:
        """The longest time in which nobody took a step."""
        window = [t for t in self.times() if since <= t <= until]
        return max((b - a for a, b in itertools.pairwise(window)), default=until - since)


class Job:
    """`elasticdl train` in a process of its own."""

    def __init__(self, root: Path, data: Path, *flags: str, times: bool = False) -> None:
        self.output = root / f"run-{time.time_ns()}"
        self.steps = Steps(root / f"steps-{time.time_ns()}")
        environment = {**os.environ, "BENCH_TIMES": str(self.steps.directory)} if times else None
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "elasticdl", "train", f"--model_zoo={ZOO}"),
                *("--model_def=conv.custom_model", f"--training_data={data}"),
                *(f"--output={self.output}", "--log_level=ERROR"),
                *flags,
            ],
            env=environment,
            stdout=subprocess.DEVNULL,
        )

    def events(self, *kinds: str) -> list[dict]:
        path = self.output / "events.jsonl"
        if not path.exists():
            return []
        lines = path.read_text().splitlines()
        events = [json.loads(line) for line in lines if line.endswith("}")]
        return [event for event in events if event["event"] in kinds]

    def workers(self) -> list[int]:
        """The processes of the members, the leader's first."""
        alive: dict[int, int] = {}
        for event in self.events("worker_joined", "worker_lost"):
            index = int(event["worker"].split("-")[1])
            if event["event"] == "worker_joined":
                alive[index] = event["pid"]
            else:
                alive.pop(index, None)
        return [alive[index] for index in sorted(alive)]

    def wait_for_workers(self, number: int) -> float:
        """Until so many train together; returns since when."""
        while True:
            groups = self.events("group_formed")
            if groups and len(groups[-1]["members"]) == number:
                return float(groups[-1]["time"])
            assert self.process.poll() is None, "the job has ended"
            time.sleep(0.1)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)


@contextlib.contextmanager
def job(*arguments: object, **options: object) -> Iterator[Job]:
    started = Job(*arguments, **options)  # type: ignore[arg-type]
    try:
        yield started
        if started.process.poll() is None:
            started.stop()
    finally:
        started.process.kill()


def ray_train_loop(config: dict) -> None:
    """The same model by Ray Train: each worker writes when it took a step."""
    os.environ["BENCH_TIMES"] = config["times"]
    sys.path.insert(0, str(ZOO))
    import conv
    import keras
    import ray.train

    model = conv.custom_model()
    model.compile(conv.optimizer(), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x, y = np.random.random((64, 28, 28)).astype("float32"), np.random.randint(0, 10, 64)
    tell = conv.Times()
    for step in itertools.count():
        model.train_on_batch(x, y)
        tell.on_train_batch_end(step)
        if step % 100 == 99:
            ray.train.report({"step": step})


def run_ray_train(times: Path, storage: Path) -> None:
    """In a process of its own: two or three workers, three as soon as SIGUSR1 has added a node."""
    from ray.cluster_utils import Cluster
    from ray.train.v2.api.config import FailureConfig, RunConfig, ScalingConfig
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    cluster.connect()
    signal.signal(signal.SIGUSR1, lambda *_: cluster.add_node(num_cpus=1))
    DataParallelTrainer(
        ray_train_loop,
        train_loop_config={"times": str(times)},
        scaling_config=ScalingConfig(
            num_workers=(2, 3),
            resources_per_worker={"CPU": 1},
            elastic_resize_monitor_interval_s=5.0,
        ),
        run_config=RunConfig(
            storage_path=str(storage), failure_config=FailureConfig(max_failures=-1)
        ),
    ).fit()


@contextlib.contextmanager
def ray_train(root: Path) -> Iterator[tuple[subprocess.Popen[bytes], Steps]]:
    steps = Steps(root / "ray-train-steps")
    with (root / "ray-train.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, __file__, str(steps.directory), str(root / "ray-train")],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            yield process, steps
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


if __name__ == "__main__":
    run_ray_train(Path(sys.argv[1]), Path(sys.argv[2]))
