"""Training on Ray: a master, workers, and this process, which starts them, watches them and tells what happens."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from elasticdl.artifacts.run_directory import RunDirectory
from elasticdl.errors import InvalidValue
from elasticdl.job.config import JobConfig
from elasticdl.job.parse import parse_resources
from elasticdl.runtime.elastic.cluster import Cluster, check_address, ray_cluster, way_to
from elasticdl.runtime.elastic.job import Job, assign, controlled
from elasticdl.runtime.elastic.losses import Losses
from elasticdl.runtime.elastic.processors import num_cpus
from elasticdl.runtime.elastic.scaling import ScaleWish
from elasticdl.runtime.elastic.stalls import Stalls
from elasticdl.runtime.elastic.zoo_files import zoo_environment, zoo_to_send
from elasticdl.runtime.interrupt import Interrupt
from elasticdl.runtime.journal import Journal
from elasticdl.runtime.local import make_journal, prepare, run_directory
from elasticdl.runtime.next_steps import next_steps
from elasticdl.runtime.result import Result
from elasticdl.storage import is_local, remove

__all__ = ["check_flags", "on_ray", "status_of", "train"]

MOST_PER_CPU = 16
"""Workers on this machine for each of its processors: more is a slip of the keyboard."""


def train(config: JobConfig, objects: Mapping[str, Any]) -> Result:
    """Train with workers that may come and go."""
    began = time.monotonic()
    check_flags(config)
    directory = run_directory(config)
    asked, config, store = prepare(config, objects, directory)
    zoo = zoo_to_send(config.model_zoo) if config.model_def else None
    with (
        Interrupt(objects.get("is_cancelled")) as interrupt,
        zoo_environment(zoo) as environment,
        directory.held(resume=config.resume, job=asked),
        make_journal(config, directory, objects.get("listener")) as journal,
    ):
        interrupt.heed(directory.is_asked_to_stop)
        if not config.resume:
            store.clear()
        try:
            outcome, stalls = on_ray(
                config, objects, directory, journal, interrupt, zoo, environment
            )
        except BaseException as error:
            if not isinstance(error, KeyboardInterrupt):
                journal.emit("run_ended", status="failed", error=f"{type(error).__name__}: {error}")
            raise
        status = status_of(outcome, interrupt)
        journal.emit("run_ended", status=status, reason=outcome["reason"], step=outcome["steps"])
    return Result(
        command="train",
        status=status,
        steps=outcome["steps"],
        history=outcome["history"],
        metrics=outcome["metrics"],
        output=directory.path,
        model_path=directory.model if status in ("completed", "stopped") else None,
        seconds=time.monotonic() - began,
        facts=stalls.facts,
        next_steps=next_steps(config, directory, status),
    )


def on_ray(
    config: JobConfig,
    objects: Mapping[str, Any],
    directory: RunDirectory,
    journal: Journal,
    interrupt: Interrupt,
    zoo: Path | None,
    environment: Mapping[str, Any],
) -> tuple[dict[str, Any], Stalls]:
    """The workers of a training, to its end: what came of it, and how often the group changed.

    Args:
      objects: for the workers, see `member_training.train`.
      zoo, environment: the directory of the user's code, and Ray's environment with a copy of it.
    """
    remove(directory.master)
    journal.emit("waiting", message=way_to(config.ray_address))
    with ray_cluster(
        config.ray_address,
        num_cpus=0,  # actors ask for none; Ray would start a process for each, for nothing
        runtime_env=environment,
        log_level=config.log_level,
    ) as cluster:
        training = _Training(config, directory, cluster, journal, interrupt)
        return training.run(objects, zoo), training.stalls


def status_of(outcome: Mapping[str, Any], interrupt: Interrupt) -> str:
    """How a training ended, as runs say it."""
    statuses = {"completed": "completed", "interrupted": interrupt.status}
    return statuses.get(outcome["reason"], "stopped")


def check_flags(config: JobConfig) -> None:
    """What can be seen to be wrong before Ray is started."""
    if config.debug:
        raise InvalidValue(
            "--debug runs in this process, where a debugger is. Leave --distribution_strategy out."
        )
    parse_resources("worker_resource_request", config.worker_resource_request or "")
    check_address(config.ray_address)
    most = MOST_PER_CPU * num_cpus()
    if config.ray_address is None and config.workers[1] > most:
        raise InvalidValue(
            f"Invalid num_workers {config.num_workers}: this machine has {num_cpus()} processors. Give {most} at most, "
            "or the address of a larger cluster with --ray_address."
        )


class _Training:
    """A master and its workers."""

    def __init__(
        self,
        config: JobConfig,
        directory: RunDirectory,
        cluster: Cluster,
        journal: Journal,
        interrupt: Interrupt,
    ) -> None:
        self._config = config
        self._directory = directory
        self._cluster = cluster
        self._journal = journal
        self._interrupt = interrupt
        self.stalls = Stalls()

    def run(self, objects: Mapping[str, Any], zoo: Path | None) -> dict[str, Any]:
        """Until the training is done: what came of it."""
        path = self._directory.path
        where = str(path.absolute()) if is_local(path) else str(path)
        with self._master() as master:
            job = Job(
                self._cluster,
                assign(self._config, self._cluster, where, zoo=zoo),
                objects,
                master,
                losses=Losses(
                    Path(where, "logs"),
                    self._config.workers[1],
                    "a step was taken",
                    keeps_logs=True,
                ),
                interrupt=self._interrupt,
                on_event=self._heard,
                wishes=ScaleWish(path),
            )
            return job.run()

    @contextlib.contextmanager
    def _master(self) -> Iterator[Any]:
        from elasticdl.runtime.elastic.master import Master

        with (
            _appendable(self._directory) as file,
            controlled(
                self._cluster, Master, str(file), self._config.workers, self._config.worker_timeout
            ) as master,
        ):
            yield master

    def _heard(self, event: Mapping[str, Any]) -> None:
        self.stalls.heard(event)
        self._journal.emit(**event)


@contextlib.contextmanager
def _appendable(directory: RunDirectory) -> Iterator[Path]:
    """Where the master may write its journal: to a file of a remote directory nothing can be added."""
    if is_local(directory.master):
        yield Path(str(directory.master)).absolute()
        return
    with tempfile.TemporaryDirectory(prefix="elasticdl-master-") as elsewhere:
        yield Path(elsewhere, "master.jsonl")
