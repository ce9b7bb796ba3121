"""A worker's share in an evaluation or a prediction: a lease, its result, the next lease, until none is left."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from elasticdl.data.ledger import Lease
from elasticdl.data.pipeline import Leases
from elasticdl.errors import DataError
from elasticdl.runtime.elastic.dispatch import Facts, Turn
from elasticdl.runtime.elastic.failures import Failure
from elasticdl.runtime.evaluation import OpenedEvaluation, opened_evaluation
from elasticdl.runtime.predict_work import Stopped
from elasticdl.runtime.prediction import Begun, Prediction, opened_prediction

if TYPE_CHECKING:
    from collections.abc import Iterator

    from elasticdl.runtime.elastic.worker import Assignment

__all__ = ["share"]

PROGRESS_S = 0.5

Tell = Callable[[BaseException], Failure]


class Task(Protocol):
    """What is done with leases."""

    facts: Facts
    pipeline: Leases

    def join(self) -> Begun:
        """Make ready what all workers write to; what is there already."""

    def about(self) -> Any:
        """What the process that started the job has to know."""

    def run(
        self,
        lease: Lease,
        following: Lease | None,
        on_rows: Callable[[int], None],
        is_stopped: Callable[[], bool],
    ) -> Any: ...

    def merge(self, results: Sequence[Any]) -> dict[str, Any]: ...


def share(
    index: int, dispatcher: Any, assignment: Assignment, objects: Mapping[str, Any], tell: Tell
) -> Any:
    """Work to the end: returns what came of it, or what another worker failed with."""
    with _opened(index, assignment, objects) as task:
        return _Share(f"worker-{index}", dispatcher, task, tell).run()


def _opened(
    index: int, assignment: Assignment, objects: Mapping[str, Any]
) -> AbstractContextManager[Task]:
    return (
        _evaluating(assignment, objects)
        if assignment.request is None
        else _predicting(index, assignment, objects)
    )


@contextmanager
def _evaluating(assignment: Assignment, objects: Mapping[str, Any]) -> Iterator[Task]:
    with opened_evaluation(assignment.config, objects) as opened:
        yield _Evaluating(opened)


@contextmanager
def _predicting(index: int, assignment: Assignment, objects: Mapping[str, Any]) -> Iterator[Task]:
    assert assignment.request is not None
    with opened_prediction(
        assignment.request,
        objects,
        collect=assignment.collect,
        worker_id=index,
        zoo_copy=assignment.config.model_zoo if assignment.zoo else None,
    ) as prediction:
        yield _Predicting(prediction, assignment.request.token)


class _Evaluating:
    """A lease becomes a part of the evaluation; one worker merges them."""

    def __init__(self, opened: OpenedEvaluation) -> None:
        assert opened.config.seed is not None
        self._evaluator = opened.evaluator
        self.pipeline: Leases = opened.pipeline
        shards = tuple(opened.source.shards)
        self.facts = Facts(shards, opened.records_per_lease, opened.config.seed)

    def join(self) -> Begun:
        return Begun(frozenset(), ())

    def about(self) -> Any:
        return None

    def run(
        self,
        lease: Lease,
        following: Lease | None,
        on_rows: Callable[[int], None],
        is_stopped: Callable[[], bool],
    ) -> Any:
        if is_stopped():
            raise Stopped
        return self._evaluator.part([lease], following=following)

    def merge(self, results: Sequence[Any]) -> dict[str, Any]:
        return {"reason": "completed", "metrics": self._evaluator.merge(results).metrics}


class _Predicting:
    """A lease becomes a part of the output, or blocks of predictions for who collects them."""

    def __init__(self, prediction: Prediction, token: str) -> None:
        assert prediction.config.seed is not None
        self._token = token
        self._prediction = prediction
        self.pipeline = prediction.predictor.pipeline
        shards = tuple(prediction.shards)
        self.facts = Facts(shards, prediction.records_per_lease, prediction.config.seed)

    def join(self) -> Begun:
        return self._prediction.join(self._token)

    def about(self) -> Any:
        from ray import cloudpickle

        # Sealed: the dispatcher, which passes it on, need not have what it is made of.
        memory = self._prediction.memory
        return None if memory is None else cloudpickle.dumps(self._prediction.collector())

    def run(
        self,
        lease: Lease,
        following: Lease | None,
        on_rows: Callable[[int], None],
        is_stopped: Callable[[], bool],
    ) -> Any:
        rows = self._prediction.run_lease(lease, following, on_rows=on_rows, is_stopped=is_stopped)
        return lease.num_records - rows, self._prediction.take(lease.number)

    def merge(self, results: Sequence[Any]) -> dict[str, Any]:
        raise NotImplementedError("parts of a prediction are put together by who holds its output")


class _Share:
    """The loop of one worker."""

    def __init__(self, name: str, dispatcher: Any, task: Task, tell: Tell) -> None:
        self._name = name
        self._dispatcher = dispatcher
        self._task = task
        self._tell = tell
        self._stopped = dispatcher.stopped.remote()
        self._told = 0.0

    def run(self) -> Any:
        self._enter()
        while True:
            turn: Turn = self._ask("lease", self._name)
            if turn.do == "enter":  # a dispatcher that knows nothing yet
                self._enter()
            elif turn.do == "lease":
                self._work(turn)
            elif turn.do == "merge":
                return self._task.merge(turn.results)
            else:
                return turn.failure if turn.do == "fail" else turn.outcome

    def _enter(self) -> None:
        import ray

        node = str(ray.get_runtime_context().get_node_id())
        answer = self._ask("enter", self._name, os.getpid(), node, self._task.facts)
        if answer == "differs":
            raise DataError(
                "The data has changed while it was read: its files or their numbers of records are others than a "
                "worker found before. Run the command again when nobody writes to it."
            )
        if answer == "begin":
            begun = self._task.join()
            self._ask("begun", begun.done, begun.faults, self._task.about())

    def _work(self, turn: Turn) -> None:
        lease = turn.lease
        assert lease is not None
        try:
            result = self._task.run(lease, turn.following, self._on_rows, self._is_stopped)
        except Stopped:
            return
        except Exception as error:
            if not _is_reading(error, self._task.pipeline):
                raise
            self._ask("fail", self._name, lease.number, self._tell(error))
        else:
            self._ask("complete", self._name, lease.number, result)

    def _on_rows(self, rows: int) -> None:
        if (now := time.monotonic()) - self._told > PROGRESS_S:
            self._told = now
            self._dispatcher.progress.remote(self._name, rows)

    def _is_stopped(self) -> bool:
        import ray

        return bool(ray.wait([self._stopped], timeout=0)[0])

    def _ask(self, method: str, *arguments: Any) -> Any:
        import ray

        return ray.get(getattr(self._dispatcher, method).remote(*arguments))


def _is_reading(error: Exception, pipeline: Leases) -> bool:
    """Whether it came from the records or from who reads them, which may be this machine's fault alone."""
    import tensorflow as tf

    if isinstance(error, DataError):
        return True
    if isinstance(error, tf.errors.OpError):
        return "Iterator" in str(error)
    try:
        pipeline.reraise()
    except BaseException as raised:
        return raised is error
    return False
