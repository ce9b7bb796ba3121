"""Running a job on Ray: a master, workers, and this process, which starts them, watches them and tells what happens."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elasticdl.artifacts.run_directory import RunDirectory
from elasticdl.contract.git_zoo import fetch_zoo
from elasticdl.errors import InvalidValue, RunError
from elasticdl.job.config import JobConfig
from elasticdl.job.parse import parse_resources
from elasticdl.runtime.elastic.cluster import Cluster, ray_cluster
from elasticdl.runtime.elastic.losses import Losses, why_lost
from elasticdl.runtime.elastic.scaling import ScaleWish
from elasticdl.runtime.elastic.stalls import Stalls
from elasticdl.runtime.elastic.worker import Assignment, Failure, Worker
from elasticdl.runtime.elastic.zoo_files import zoo_environment
from elasticdl.runtime.interrupt import Interrupt
from elasticdl.runtime.journal import Journal
from elasticdl.runtime.local import make_journal, prepare, run_directory
from elasticdl.runtime.next_steps import next_steps
from elasticdl.runtime.result import Result
from elasticdl.storage import is_local, remove

__all__ = ["train"]

LOOP_S = 0.5
ECHO_S = 5.0
"""How long to wait for the worker that knows more of a failure than the one that told of it first."""
MASTER_CALLS = 10_000


def train(config: JobConfig, objects: Mapping[str, Any]) -> Result:
    """Train with workers that may come and go."""
    began = time.monotonic()
    _check(config)
    directory = run_directory(config)
    asked, config, store = prepare(config, objects, directory)
    zoo = Path(fetch_zoo(config.model_zoo).directory) if config.model_def else None
    with (
        Interrupt(objects.get("is_cancelled")) as interrupt,
        zoo_environment(zoo) as environment,
        directory.held(resume=config.resume, job=asked),
        make_journal(config, directory, objects.get("listener")) as journal,
    ):
        if not config.resume:
            store.clear()
        remove(directory.master)
        try:
            with ray_cluster(
                config.ray_address,
                num_cpus=_num_cpus(),
                runtime_env=environment,
                log_level=config.log_level,
            ) as cluster:
                job = Job(config, objects, directory, cluster, journal, interrupt, zoo is not None)
                outcome = job.run()
        except BaseException as error:
            if not isinstance(error, KeyboardInterrupt):
                journal.emit("run_ended", status="failed", error=f"{type(error).__name__}: {error}")
            raise
        reason = outcome["reason"]
        statuses = {"completed": "completed", "interrupted": interrupt.status}
        status = statuses.get(reason, "stopped")
        journal.emit("run_ended", status=status, reason=reason, step=outcome["steps"])
    return Result(
        command="train",
        status=status,
        steps=outcome["steps"],
        history=outcome["history"],
        metrics=outcome["metrics"],
        output=directory.path,
        model_path=directory.model if status in ("completed", "stopped") else None,
        seconds=time.monotonic() - began,
        facts=job.stalls.facts,
        next_steps=next_steps(config, directory, status),
    )


def _check(config: JobConfig) -> None:
    if config.debug:
        raise InvalidValue(
            "--debug runs in this process, where a debugger is. Leave --distribution_strategy out."
        )


class Job:
    """A master and its workers, from the first to the last."""

    def __init__(
        self,
        config: JobConfig,
        objects: Mapping[str, Any],
        directory: RunDirectory,
        cluster: Cluster,
        journal: Journal,
        interrupt: Interrupt,
        has_zoo: bool,
    ) -> None:
        import ray

        self._config = config
        self._directory = directory
        self._cluster = cluster
        self._journal = journal
        self._interrupt = interrupt
        self._minimum, self._maximum = config.workers
        self._resources = _resources(config, cluster, self._maximum)
        self._assignment = Assignment(
            config=config,
            directory=str(directory.path.absolute())
            if is_local(directory.path)
            else str(directory.path),
            cwd=os.getcwd(),
            threads=_threads(self._resources, cluster, self._maximum),
            host="127.0.0.1" if cluster.is_own else None,
            has_zoo=has_zoo,
        )
        given = {k: v for k, v in objects.items() if k not in ("listener", "is_cancelled")}
        self._objects = ray.put(given)
        self._master = self._make_master()
        self._workers: dict[int, Any] = {}
        self._runs: dict[Any, int] = {}
        self._next = 0
        self._seen = 0
        self._members: list[int] = []
        self._losses = Losses(directory, self._maximum)
        self._wishes = ScaleWish(directory.path)
        self._echo: tuple[float, Failure] | None = None
        self._stopping = False
        self.stalls = Stalls()

    def _make_master(self) -> Any:
        import ray

        from elasticdl.runtime.elastic.master import Master

        kept = self._directory.master
        journal = Path(str(kept)).absolute() if is_local(kept) else _elsewhere()
        fixed = self._minimum == self._maximum
        actor = ray.remote(
            num_cpus=0, max_restarts=-1, max_task_retries=-1, max_concurrency=MASTER_CALLS
        )(Master)
        # A number alone says with how many to begin; who is lost must not stop the others.
        return actor.options(**self._environment()).remote(
            str(journal),
            (1 if fixed else self._minimum, self._maximum),
            self._minimum,
            self._config.worker_timeout,
        )

    def _environment(self) -> dict[str, Any]:
        environment = self._cluster.runtime_env
        return {"runtime_env": dict(environment)} if environment else {}

    def run(self) -> dict[str, Any]:
        """Until the training is done: what came of it."""
        import ray

        self._interrupt.listen()
        watch = self._master.watch.remote(self._seen)
        while True:
            done, _ = ray.wait([watch, *self._runs], num_returns=1, timeout=LOOP_S)
            for ref in done:
                if ref != watch:
                    outcome = self._ended(ref)
                    if outcome is not None:
                        return self._finish(outcome)
                    continue
                self._heard(ray.get(watch))
                watch = self._master.watch.remote(self._seen)
            self._obey()

    def _heard(self, news: Mapping[str, Any]) -> None:
        for number, event in news["events"].items():
            self._seen = max(self._seen, int(number))
            self._losses.heard(event)
            self.stalls.heard(event)
            self._journal.emit(**event)
        self._members = news["members"]
        for _ in range(news["missing"]):
            self._start()

    def _start(self) -> None:
        import ray

        index, self._next = self._next, self._next + 1
        ray.get(self._master.start.remote(index))
        actor = ray.remote(max_restarts=0, max_concurrency=2, **self._resources)(Worker)
        worker = actor.options(**self._environment()).remote(index)
        run = worker.run.remote(self._master, self._assignment, self._objects)
        self._workers[index], self._runs[run] = worker, index

    def _ended(self, ref: Any) -> dict[str, Any] | None:
        """A worker has ended: with the training, on request, with an error, or it was lost."""
        import ray

        index = self._runs.pop(ref)
        self._workers.pop(index)
        try:
            outcome = ray.get(ref)
        except ray.exceptions.RayError as error:
            reason = why_lost(error)
            self._master.lost.remote(index, reason)
            self._losses.lost(index, reason)
            return None
        if isinstance(outcome, Failure):
            self._failed(outcome)
        return outcome if isinstance(outcome, dict) else None

    def _failed(self, failure: Failure) -> None:
        from elasticdl.engine.lockstep import EchoedFailure

        if isinstance(failure.error, EchoedFailure) and self._echo is None:
            self._echo = (time.monotonic(), failure)
            return
        raise_failure(failure)

    def _obey(self) -> None:
        """What the user wants meanwhile."""
        if self._echo is not None and time.monotonic() - self._echo[0] > ECHO_S:
            raise_failure(self._echo[1])
        if self._interrupt.is_set() and not self._stopping:
            self._stopping = True
            self._master.stop.remote()
        wish = self._wishes.poll()
        if wish is not None:
            self._maximum = wish[1]
            self._master.scale.remote(1 if wish[0] == wish[1] else wish[0], wish[1])

    def _finish(self, outcome: dict[str, Any]) -> dict[str, Any]:
        """The members end together: wait for what they still have to say."""
        import ray

        self._master.end.remote()
        members = [run for run, index in self._runs.items() if index in self._members]
        ray.wait(members, num_returns=len(members), timeout=ECHO_S) if members else None
        while (news := ray.get(self._master.watch.remote(self._seen)))["events"]:
            self._heard({**news, "missing": 0})
        return outcome


def raise_failure(failure: Failure) -> None:
    """As if it had happened here."""
    if failure.error is not None:
        raise failure.error
    error = RunError(f"{failure.worker} failed: {failure.summary}")
    error.add_note(failure.text)
    raise error


def _elsewhere() -> Path:
    """A journal is appended to, which a remote directory cannot."""
    return Path(tempfile.mkdtemp(prefix="elasticdl-master-"), "master.jsonl")


def _num_cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _resources(config: JobConfig, cluster: Cluster, workers: int) -> dict[str, Any]:
    """What Ray sets aside for a worker. In a Ray of the job's own there is nobody to share with."""
    wanted = parse_resources("worker_resource_request", config.worker_resource_request or "")
    if cluster.is_own:
        return {"num_cpus": 0}
    cpus = wanted.get("cpu") or max(1, int(sum(c for _, c in cluster.nodes()) // workers))
    resources: dict[str, Any] = {"num_cpus": cpus}
    if "memory" in wanted:
        resources["memory"] = wanted["memory"]
    if "gpu" in wanted:
        resources["num_gpus"] = wanted["gpu"]
    return resources


def _threads(resources: Mapping[str, Any], cluster: Cluster, workers: int) -> int:
    if resources["num_cpus"]:
        return max(1, int(resources["num_cpus"]))
    return max(1, _num_cpus() // workers)
