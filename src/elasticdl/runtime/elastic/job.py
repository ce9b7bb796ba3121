"""The workers of a job: started, watched, replaced when they are lost, ended.

What they do is none of its business. An actor, the *control*, knows how many are wanted and what happened: the `Master`
of a training, the `Dispatcher` of work that is split.
"""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from elasticdl.job.config import JobConfig
from elasticdl.job.parse import parse_resources
from elasticdl.runtime.elastic.cluster import Cluster
from elasticdl.runtime.elastic.failures import Failure, raised
from elasticdl.runtime.elastic.losses import Losses
from elasticdl.runtime.elastic.processors import Places, num_cpus, processors
from elasticdl.runtime.elastic.scaling import ScaleWish
from elasticdl.runtime.elastic.worker import Assignment, Worker
from elasticdl.runtime.interrupt import Interrupt

__all__ = ["Job", "assign", "controlled"]

LOOP_S = 0.5
ECHO_S = 5.0
"""How long to wait for the worker that knows more of a failure than the one that told of it first."""
CONTROL_CALLS = 10_000
OF_THE_DRIVER = ("listener", "is_cancelled")
"""Objects that are not for workers."""

Outcome = dict[str, Any]


class Job:
    """A control and its workers, from the first to the last.

    Args:
      assignment: what the workers have to know.
      objects: real Python objects in the place of the config's names.
      control: the actor's handle, see `controlled`.
      losses: who says when it is no use to start another worker.
      interrupt: how the user asks to stop.
      on_event: is told what the control says, in order.
      wishes: where the user asks for another number of workers.
    """

    def __init__(
        self,
        cluster: Cluster,
        assignment: Assignment,
        objects: Mapping[str, Any],
        control: Any,
        *,
        losses: Losses,
        interrupt: Interrupt,
        on_event: Callable[[Mapping[str, Any]], None],
        wishes: ScaleWish | None = None,
    ) -> None:
        import ray

        self._assignment = assignment
        self._places = Places(
            processors() if cluster.is_own else [],
            assignment.threads,
            assignment.config.workers[1],
        )
        given = {name: value for name, value in objects.items() if name not in OF_THE_DRIVER}
        # In a list Ray leaves it alone: a worker unpacks it when it has TensorFlow as it wants it.
        self._objects = [_put(given)]
        self._actor = ray.remote(
            max_restarts=0,
            **_resources(assignment.config, cluster),
            **environment_of(cluster),
        )(Worker)
        self._control = control
        self._losses = losses
        self._interrupt = interrupt
        self._on_event = on_event
        self._wishes = wishes
        self._workers: dict[int, Any] = {}
        self._runs: dict[Any, int] = {}
        self._next = 0
        self._seen = 0
        self._members: list[int] = []
        self._node = cluster.node
        self._pids: dict[str, int] = {}
        """Of the workers on this node."""
        self._echo: tuple[float, Failure] | None = None
        self._stopping = False

    def run(self) -> Outcome:
        """Until a worker or the control says what came of it. No worker is left."""
        import ray

        self._interrupt.listen()
        # What workers leave behind when they are killed is here, if they are on this machine.
        with tempfile.TemporaryDirectory(prefix="elasticdl-", ignore_cleanup_errors=True) as aside:
            self._assignment = replace(self._assignment, temporary=aside)
            try:
                return self._watch()
            finally:
                for worker in self._workers.values():
                    with contextlib.suppress(Exception):  # it may be gone, or Ray itself
                        ray.kill(worker)

    def _watch(self) -> Outcome:
        import ray

        watch = self._control.watch.remote(self._seen)
        while True:
            done, _ = ray.wait([watch, *self._runs], num_returns=1, timeout=LOOP_S)
            for ref in done:
                if ref != watch:
                    outcome = self._ended(ref)
                    if outcome is not None:
                        return self._finish(outcome)
                    continue
                self._heard(ray.get(watch))
                watch = self._control.watch.remote(self._seen)
            outcome = self._obey()
            if outcome is None and self._stopping and not self._runs:
                outcome = ray.get(self._control.abandoned.remote())
            if outcome is not None:
                return outcome

    def _heard(self, news: Mapping[str, Any]) -> None:
        for number, event in news["events"].items():
            self._seen = max(self._seen, int(number))
            self._losses.went_on(event.get("step", event.get("records")))
            if event["event"] == "worker_joined" and event["node"] == self._node:
                self._pids[event["worker"]] = event["pid"]
            self._on_event(event)
            if event["event"] == "worker_lost":
                self._end_process(event["worker"])
        self._members = news["members"]
        missing = news.get("missing", news.get("wanted", 0) - len(self._runs))
        for _ in range(missing):
            self._start()

    def _end_process(self, name: str) -> None:
        """Of a worker that was expelled since it does not answer: a process that is stopped is not, for Ray."""
        import ray

        index = int(name.rpartition("-")[2])
        if index not in self._workers:
            return
        self._places.give_back(index)
        ray.kill(self._workers[index])
        if name in self._pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pids[name], signal.SIGKILL)

    def _start(self) -> None:
        import ray

        index, self._next = self._next, self._next + 1
        ray.get(self._control.start.remote(index))
        worker = self._actor.remote(index)
        assignment = replace(self._assignment, processors=self._places.take(index))
        run = worker.run.remote(self._control, assignment, self._objects)
        self._workers[index], self._runs[run] = worker, index

    def _ended(self, ref: Any) -> Outcome | None:
        """A worker has ended: with the job, on request, with an error, or it was lost."""
        import ray

        index = self._runs.pop(ref)
        self._workers.pop(index)
        self._places.give_back(index)
        try:
            outcome = ray.get(ref)
        except ray.exceptions.RayError as error:
            reason = self._losses.why(index, error)
            self._control.lost.remote(index, reason)
            self._losses.lost(index, reason)
            return None
        if isinstance(outcome, Failure):
            self._failed(outcome)
        return outcome if isinstance(outcome, dict) else None

    def _failed(self, failure: Failure) -> None:
        if failure.name == "EchoedFailure" and self._echo is None:
            self._echo = (time.monotonic(), failure)
            return
        self._raise(failure)

    def _raise(self, failure: Failure) -> NoReturn:
        """What was told before it comes first."""
        import ray

        with contextlib.suppress(ray.exceptions.RayError):
            news = ray.get(self._control.watch.remote(self._seen))
            self._heard({**news, "missing": 0})
        raise raised(failure)

    def _obey(self) -> Outcome | None:
        """What the user wants meanwhile; what came of it, when nothing was begun."""
        import ray

        if self._echo is not None and time.monotonic() - self._echo[0] > ECHO_S:
            self._raise(self._echo[1])
        if self._interrupt.is_set() and not self._stopping:
            self._stopping = True
            outcome: Outcome | None = ray.get(self._control.stop.remote())
            return outcome
        wish = None if self._wishes is None else self._wishes.poll()
        if wish is not None:
            self._control.scale.remote(*wish)
        return None

    def _finish(self, outcome: Outcome) -> Outcome:
        """The members end together: wait for what they still have to say."""
        import ray

        self._control.end.remote()
        members = [run for run, index in self._runs.items() if index in self._members]
        if members:
            ray.wait(members, num_returns=len(members), timeout=ECHO_S)
        while (news := ray.get(self._control.watch.remote(self._seen)))["events"]:
            self._heard({**news, "missing": 0})
        late = ray.get(self._control.end.remote())  # what they did until they had heard of the end
        return outcome if late is None else {**outcome, **late}


def _put(objects: Mapping[str, Any]) -> Any:
    import ray

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Keras, of NumPy, when it saves itself
        return ray.put(objects)


@contextlib.contextmanager
def controlled(cluster: Cluster, kind: type, *arguments: Any) -> Iterator[Any]:
    """An actor that comes back when its process is lost, for as long as it is wanted."""
    import ray

    actor = ray.remote(
        num_cpus=0,
        max_restarts=-1,
        max_task_retries=-1,
        max_concurrency=CONTROL_CALLS,
        **environment_of(cluster),
        **_here(),
    )(kind)
    control = actor.remote(*arguments)
    try:
        yield control
    finally:
        with contextlib.suppress(Exception):
            ray.kill(control)


def assign(
    config: JobConfig,
    cluster: Cluster,
    directory: str,
    *,
    zoo: Path | None,
    is_temporary: bool = False,
    **more: Any,
) -> Assignment:
    """What the workers of a job have to know, from where the command runs."""
    cpus = _resources(config, cluster)["num_cpus"]
    if cluster.is_own:
        cpus = min(_wanted(config).get("cpu", 0), num_cpus())
    return Assignment(
        config=config,
        directory=directory,
        is_temporary=is_temporary,
        cwd=os.getcwd(),
        threads=max(1, int(cpus or num_cpus() // config.workers[1])),
        host="127.0.0.1" if cluster.is_own else None,
        zoo=None if zoo is None else str(zoo),
        **more,
    )


def environment_of(cluster: Cluster) -> dict[str, Any]:
    return {"runtime_env": dict(cluster.runtime_env)} if cluster.runtime_env else {}


def _resources(config: JobConfig, cluster: Cluster) -> dict[str, Any]:
    """What Ray sets aside for a worker. In a Ray of the job's own there is nobody to share with."""
    if cluster.is_own:
        return {"num_cpus": 0}
    wanted = _wanted(config)
    cpus = [cpus for _, cpus in cluster.nodes()]
    share = int(min(max(cpus), sum(cpus) // config.workers[1]))
    resources: dict[str, Any] = {"num_cpus": wanted.get("cpu") or max(1, share)}
    if "memory" in wanted:
        resources["memory"] = wanted["memory"]
    if "gpu" in wanted:
        resources["num_gpus"] = wanted["gpu"]
    return resources


def _wanted(config: JobConfig) -> dict[str, float]:
    return parse_resources("worker_resource_request", config.worker_resource_request or "")


def _here() -> dict[str, Any]:
    """On the node of this process, if it has one: a control must not be lost with a worker's."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    node = ray.get_runtime_context().get_node_id()
    return {"scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=True)}
