"""A worker's process: a Ray actor that trains as a member of a group until the job is done."""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from elasticdl.errors import ElasticDLError
from elasticdl.job.config import JobConfig
from elasticdl.runtime.elastic.membership import Member

__all__ = ["Assignment", "Failure", "Worker"]


@dataclass(frozen=True)
class Assignment:
    """What a worker has to know of its job."""

    config: JobConfig
    directory: str
    """The run's, where all can write."""
    cwd: str
    """The working directory of the command: where the user's relative paths begin."""
    threads: int
    host: str | None
    """The address to be reached at; None for the node's own."""
    has_zoo: bool
    """Whether the process starts in a copy of the model zoo."""


@dataclass(frozen=True)
class Failure:
    """What a worker raised, to be raised again by the command."""

    worker: str
    error: BaseException | None
    """An error of ours; None for one of the user's code, which may be of a class that is only known here."""
    text: str
    """The traceback."""
    summary: str


class Worker:
    """The actor. It runs one job and is then of no use."""

    def __init__(self, index: int) -> None:
        self._index = index

    def run(self, master: Any, assignment: Assignment, objects: Mapping[str, Any]) -> Any:
        """Train to the end: returns what came of it, or a `Failure`."""
        from elasticdl.runtime.elastic.member import Left

        name = f"worker-{self._index}"
        try:
            config = _prepare_process(name, assignment)
            return self._train(master, assignment, config, objects)
        except Left:
            return None
        except BaseException as error:
            traceback.print_exc()
            sys.stderr.flush()
            return _failure(name, error)

    def _train(
        self, master: Any, assignment: Assignment, config: JobConfig, objects: Mapping[str, Any]
    ) -> Any:
        from elasticdl.runtime.elastic.member import RayGroup
        from elasticdl.runtime.elastic.member_training import train

        collective = _load_tensorflow(self._index, assignment)
        member = Member(self._index, collective.address, os.getpid(), _node_name())
        group = RayGroup(master, member, collective)
        return train(config, objects, Path(assignment.directory), group, master)


def _load_tensorflow(index: int, assignment: Assignment) -> Any:
    """TensorFlow with this worker's share of the machine, and its place among TensorFlow's tasks."""
    from elasticdl.quiet import load_tensorflow
    from elasticdl.runtime.elastic.collective import Collective

    made = []

    def configure() -> None:
        _divide_threads(assignment.threads)
        made.append(Collective(index, assignment.host or _node_address()))

    load_tensorflow(configure)
    return made[0]


def _prepare_process(name: str, assignment: Assignment) -> JobConfig:
    """What the process says goes to its log; relative paths are those of the command."""
    logs = Path(assignment.directory, "logs")
    logs.mkdir(parents=True, exist_ok=True)
    file = os.open(logs / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for number in (1, 2):
        os.dup2(file, number)
    os.close(file)
    print(f"{time.strftime('%F %T')} {name} is process {os.getpid()}", flush=True)
    config = assignment.config
    if assignment.has_zoo:
        config = replace(config, model_zoo=os.getcwd())
    if os.path.isdir(assignment.cwd):
        os.chdir(assignment.cwd)
    return config


def _divide_threads(threads: int) -> None:
    """The processors of a machine are shared by its workers."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(max(2, threads))


def _node_address() -> str:
    import ray

    return str(ray.util.get_node_ip_address())  # type: ignore[no-untyped-call]


def _node_name() -> str:
    import ray

    return str(ray.get_runtime_context().get_node_id())


def _failure(name: str, error: BaseException) -> Failure:
    return Failure(
        name,
        error if isinstance(error, ElasticDLError) else None,
        "".join(traceback.format_exception(error)),
        f"{type(error).__name__}: {error}",
    )
