"""Evaluating and predicting on Ray: a dispatcher of leases, workers, and this process, which watches them."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elasticdl.errors import Stopped
from elasticdl.job.config import JobConfig
from elasticdl.runtime.brief import telling
from elasticdl.runtime.elastic.cluster import ray_cluster, way_to
from elasticdl.runtime.elastic.dispatch import Dispatcher
from elasticdl.runtime.elastic.job import Job, assign, controlled
from elasticdl.runtime.elastic.launch import check_flags
from elasticdl.runtime.elastic.losses import Losses
from elasticdl.runtime.elastic.zoo_files import zoo_environment, zoo_to_send
from elasticdl.runtime.evaluation import check_evaluation
from elasticdl.runtime.interrupt import Interrupt
from elasticdl.runtime.predict_end import Outcome, finish, made_result
from elasticdl.runtime.prediction import accept, check_prediction, holding
from elasticdl.runtime.result import Result

__all__ = ["evaluate", "predict"]


def evaluate(config: JobConfig, objects: Mapping[str, Any]) -> Result:
    """Evaluate a trained model with workers that may come and go."""
    began = time.monotonic()
    check_flags(config)
    check_evaluation(config, objects)
    with (
        Interrupt(objects.get("is_cancelled")) as interrupt,
        telling(config) as emit,
    ):
        split = _Split(config, objects, interrupt, emit)
        outcome = split.run(merges=True)
    is_whole = outcome["reason"] == "completed"
    return Result(
        command="evaluate",
        status="completed" if is_whole else interrupt.status,
        metrics=outcome["metrics"] if is_whole else {},
        seconds=time.monotonic() - began,
    )


def predict(config: JobConfig, objects: Mapping[str, Any], *, collect: bool = False) -> Result:
    """Predict with a trained model, with workers that may come and go.

    Args:
      config: the job.
      objects: real Python objects in the place of the config's names.
      collect: whether predictions that go nowhere else are returned.
    """
    began = time.monotonic()
    check_flags(config)
    request = accept(config, objects)
    check_prediction(request, objects)
    with (
        Interrupt(objects.get("is_cancelled")) as interrupt,
        holding(request) as output,
        telling(config) as emit,
    ):
        split = _Split(request.config, objects, interrupt, emit)
        made = split.run(merges=False, request=request, collect=collect)
        if not made["total"]:
            raise Stopped("It was stopped before a record was predicted.", interrupt.status)
        is_whole = made["reason"] == "completed"
        outcome = Outcome(
            status="completed" if is_whole else interrupt.status,
            total=made["total"],
            records=made["records"],
            num_parts=made["num_parts"],
            left_out=sum(split.left_out.values()),
        )
        for message in finish(output, outcome):
            emit("warning", message=message)
    return made_result(
        request.config,
        objects,
        outcome,
        output=output,
        seconds=time.monotonic() - began,
        predictions=split.predictions(),
    )


@dataclass
class _Split:
    """A dispatcher and its workers."""

    config: JobConfig
    objects: Mapping[str, Any]
    interrupt: Interrupt
    emit: Callable[..., None]
    left_out: dict[int, int] = field(default_factory=dict)
    """By the number of a lease: how many of its records made no prediction."""
    _collector: Any = None

    def run(self, *, merges: bool, **more: Any) -> dict[str, Any]:
        """Until all leases are done, or the user wants no more: what came of it."""
        config = self.config
        if "max_bad_tasks" in config.given:
            self.emit("warning", message=_ONLY_TRAINING.format(config.command))
        self.emit("waiting", message=way_to(config.ray_address))
        with (
            _zoo(config) as (zoo, environment),
            tempfile.TemporaryDirectory(prefix="elasticdl-logs-") as logs,
            ray_cluster(
                config.ray_address,
                num_cpus=0,  # actors ask for none; Ray would start a process for each, for nothing
                runtime_env=environment,
                log_level=config.log_level,
            ) as cluster,
            controlled(
                cluster, Dispatcher, config.command, config.workers[1], merges
            ) as dispatcher,
        ):
            job = Job(
                cluster,
                assign(config, cluster, logs, zoo=zoo, is_temporary=True, **more),
                self.objects,
                dispatcher,
                losses=Losses(
                    Path(logs, "logs"), config.workers[1], "a task was done", keeps_logs=False
                ),
                interrupt=self.interrupt,
                on_event=self._heard,
            )
            return job.run()

    def _heard(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "result":
            left_out, blocks = event["result"]
            self.left_out[event["number"]] = left_out
            if self._collector is not None:
                self._collector.add(event["number"], blocks)
            return
        if event["event"] == "run_started":
            self._begin(event.get("about"))
        self.emit(**{name: value for name, value in event.items() if name != "about"})

    def _begin(self, collector: bytes | None) -> None:
        """The first worker knows how predictions are structured. A dispatcher that was lost asks again."""
        if collector is not None and self._collector is None:
            from ray import cloudpickle

            self._collector = cloudpickle.loads(collector)

    def predictions(self) -> Any:
        return None if self._collector is None else self._collector.predictions()


_ONLY_TRAINING = "--max_bad_tasks has no effect here: it is about training. A task that cannot be read ends '{}'."


@contextlib.contextmanager
def _zoo(config: JobConfig) -> Iterator[tuple[Path | None, dict[str, Any]]]:
    """The zoo that was named, and what workers need for it. That of a trained model lies with the model."""
    is_named = config.model_def is not None or config.model_zoo is not None
    zoo = zoo_to_send(config.model_zoo) if is_named else None
    with zoo_environment(zoo) as environment:
        yield zoo, environment
