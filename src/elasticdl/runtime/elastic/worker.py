"""A worker's process: a Ray actor that takes part in one job, in a group or with leases of its own."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from elasticdl.job.config import JobConfig
from elasticdl.runtime.elastic.failures import Failure, tell
from elasticdl.runtime.elastic.membership import Member
from elasticdl.runtime.prediction import Request
from elasticdl.storage import is_local, place

__all__ = ["Assignment", "Worker", "divide_threads", "prepare_process"]


@dataclass(frozen=True)
class Assignment:
    """What a worker has to know of its job."""

    config: JobConfig
    directory: str
    """The run's, where all can write; or one for logs."""
    is_temporary: bool
    """Whether the directory is only for the command's machine, and goes with the job."""
    cwd: str
    """The working directory of the command: where the user's relative paths begin."""
    threads: int
    host: str | None
    """The address to be reached at; None for the node's own."""
    zoo: str | None
    """The model zoo that the process starts in a copy of."""
    request: Request | None = None
    """Of a prediction."""
    collect: bool = False
    """Whether predictions that go nowhere else are wanted in memory."""
    temporary: str = ""
    """A directory on the command's machine for temporary files, which goes with the job."""
    processors: tuple[int, ...] = ()
    """Those that this one worker has to itself; none when it shares all of them."""


class Worker:
    """The actor. It runs one job and is then of no use."""

    def __init__(self, index: int) -> None:
        self._index = index

    def run(self, control: Any, assignment: Assignment, objects: list[Any]) -> Any:
        """Take part to the end: returns what came of it, or a `Failure`.

        Args:
          control: the master of a training, the dispatcher of an evaluation or a prediction.
          objects: a reference to real Python objects in the place of the config's names.
        """
        from elasticdl.runtime.elastic.member import Left

        name = f"worker-{self._index}"
        paths = {os.getcwd(): assignment.zoo} if assignment.zoo else {}
        try:
            config = prepare_process(name, assignment)
            if config.command == "train":
                return self._train(control, assignment, config, objects)
            told = partial(tell, name, paths=paths)
            return self._share(control, replace(assignment, config=config), objects, told)
        except Left:
            return None
        except BaseException as error:
            traceback.print_exc()
            sys.stderr.flush()
            return tell(name, error, paths)

    def _train(
        self, master: Any, assignment: Assignment, config: JobConfig, objects: list[Any]
    ) -> Any:
        from elasticdl.runtime.elastic.member import RayGroup
        from elasticdl.runtime.elastic.member_training import train

        collective = _load_collective(self._index, assignment)
        member = Member(self._index, collective.address, os.getpid(), _node_name())
        group = RayGroup(master, member, collective)
        signal.signal(signal.SIGTERM, lambda *_: group.leave())
        return train(config, _fetched(objects), assignment.directory, group, master)

    def _share(
        self,
        dispatcher: Any,
        assignment: Assignment,
        objects: list[Any],
        told: Callable[[BaseException], Failure],
    ) -> Any:
        from elasticdl.quiet import load_tensorflow
        from elasticdl.runtime.elastic.sharing import share

        load_tensorflow(lambda: divide_threads(assignment.threads, assignment.processors))
        return share(self._index, dispatcher, assignment, _fetched(objects), told)


def _fetched(objects: list[Any]) -> Mapping[str, Any]:
    import ray

    given: Mapping[str, Any] = ray.get(objects[0])
    return given


def _load_collective(index: int, assignment: Assignment) -> Any:
    """TensorFlow with this worker's share of the machine, and its place among TensorFlow's tasks."""
    from elasticdl.quiet import load_tensorflow
    from elasticdl.runtime.elastic.collective import Collective

    made = []

    def configure() -> None:
        divide_threads(assignment.threads, assignment.processors)
        made.append(Collective(index, assignment.host or _node_address()))

    load_tensorflow(configure)
    return made[0]


def prepare_process(name: str, assignment: Assignment) -> JobConfig:
    """What the process says goes to its log; relative paths are those of the command."""
    if assignment.processors:  # before TensorFlow starts its threads
        os.sched_setaffinity(0, assignment.processors)
    is_here = os.path.isdir(assignment.directory)
    if is_here or (not assignment.is_temporary and is_local(place(assignment.directory))):
        _log_to(Path(assignment.directory, "logs"), name)
    print(f"{time.strftime('%F %T')} {name} is process {os.getpid()}", flush=True)
    config = assignment.config
    if assignment.zoo:
        config = replace(config, model_zoo=os.getcwd())
    if os.path.isdir(assignment.cwd):
        os.chdir(assignment.cwd)
    if os.path.isdir(assignment.temporary):
        # TensorFlow removes its temporary files when a process ends by itself; ours are ended.
        tempfile.tempdir = os.environ["TMPDIR"] = assignment.temporary
    return config


def _log_to(logs: Path, name: str) -> None:
    logs.mkdir(parents=True, exist_ok=True)
    file = os.open(logs / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for number in (1, 2):
        os.dup2(file, number)
    os.close(file)


def divide_threads(threads: int, processors: tuple[int, ...]) -> None:
    """The processors of a machine are shared by its workers. Before anything else of TensorFlow.

    A thread of TensorFlow's that has nothing to do looks for work for a while before it sleeps. In a worker with one
    processor it would take that from the threads that read, and that talk to the other workers.
    """
    import tensorflow as tf
    from tensorflow.python.eager import context

    if len(processors) == 1:
        settings = tf.compat.v1.ConfigProto()
        settings.experimental.disable_thread_spinning = True
        context.context()._config = settings  # there is no public way in TensorFlow 2
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)


def _node_address() -> str:
    import ray

    return str(ray.util.get_node_ip_address())  # type: ignore[no-untyped-call]


def _node_name() -> str:
    import ray

    return str(ray.get_runtime_context().get_node_id())
