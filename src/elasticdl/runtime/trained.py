"""What a training leaves: the trained model with everything that it takes to use it elsewhere."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from upath import UPath

from elasticdl.artifacts.message import IMAGE_VARIABLE, TrainedModel
from elasticdl.artifacts.run_directory import RunDirectory
from elasticdl.artifacts.trained_model import SAVED_MODEL, Trained, save_trained_model
from elasticdl.contract.pieces import OVERRIDES
from elasticdl.contract.snapshot import Snapshot, take_snapshot
from elasticdl.data.source import Source
from elasticdl.engine.best import Best
from elasticdl.engine.inputs import split_minibatch
from elasticdl.engine.state import TrainingModel
from elasticdl.engine.trainer import Progress
from elasticdl.errors import InvalidValue
from elasticdl.job.config import JobConfig
from elasticdl.job.parse import parse_params
from elasticdl.runtime.needed_columns import Needed, find_needed

__all__ = ["TrainedModels"]

_OF_THE_JOB = (
    "model_def",
    "model_params",
    "dataset_fn",
    "loss",
    "optimizer",
    "eval_metrics_fn",
    "custom_data_reader",
    "prediction_outputs_processor",
    "data_reader_params",
    "training_data",
    "validation_data",
    "minibatch_size",
    "num_minibatches_per_task",
    "num_epochs",
    "shuffle_tasks",
    "seed",
    "job_name",
)
_CREDENTIALS = re.compile(r"(?<=://)[^/@,\s]+@")


class TrainedModels:
    """Writes trained models of one training.

    The zoo is read when it is made: who edits a model file during a long training does not change
    what was trained.

    Args:
      element: the first minibatch.
      element_spec: the minibatches' types and shapes, None where only `element` tells.
      objects: the Python objects that stood in the place of names.
      source: the training data; None where its records are not ours to read.
      ragged: whether the records of a minibatch differ in shape.
      saved_model: what the SavedModel's directory is called.
      about: what else the job says of itself.
      more: other files that belong to the trained model.
    """

    def __init__(
        self,
        config: JobConfig,
        training: TrainingModel,
        *,
        element: Any,
        element_spec: Any,
        objects: Mapping[str, Any],
        source: Source | None,
        ragged: bool = False,
        saved_model: str = SAVED_MODEL,
        about: Mapping[str, Any] | None = None,
        more: Mapping[str, bytes] | None = None,
    ) -> None:
        self._config = config
        self._training = training
        self._objects = sorted(name for name in objects if name in ("model", *OVERRIDES))
        self._source = source
        self._ragged = ragged
        self._saved_model = saved_model
        self._more_about = dict(about or {})
        self._more = dict(more or {})
        self._needed = Needed()
        self._features = _features(element, element_spec)
        self._zoo = self._snapshot()

    def save_end(self, directory: RunDirectory, progress: Progress, best: Best | None) -> list[str]:
        """The last version as `model/`; or the best there, and the last as `model_last/`."""
        metrics = {name: values[-1] for name, values in progress.history.items()}
        remarks = self._find_needed()
        if best is None or best.value is None:
            return remarks + self.save(directory.model, metrics=metrics, steps=progress.step)
        self.save(directory.last_model, metrics=metrics, steps=progress.step)
        return remarks + self.save(
            directory.model,
            values=best.parameters,
            metrics={f"val_{name}": value for name, value in best.metrics.items()},
            steps=best.step,
            chosen=str(best),
        )

    def save(
        self,
        where: UPath,
        *,
        values: Mapping[str, Any] | None = None,
        metrics: Mapping[str, float],
        steps: int,
        chosen: str = "last",
    ) -> list[str]:
        """Write the model as it is now, or with other `values`; returns what a user should know."""
        job, remarks = self._job()
        zoo = self._snapshot(self._zoo.files)  # with what was imported on the way
        training = self._training
        with _holding(training, values) as held:
            remarks += save_trained_model(
                where,
                Trained(
                    about=self._about(job, metrics, steps, chosen),
                    model=training.model,
                    values=held,
                    call=lambda features: training.model(training.bind(features), training=False),
                    features=self._features,
                    zoo=zoo.files,
                    saved_model=self._saved_model,
                    more=self._more,
                ),
            )
        return [*remarks, *self._zoo.remarks, *zoo.remarks]

    def _find_needed(self) -> list[str]:
        """At the end, where the user's code may draw random numbers and no step depends on them any more."""
        if self._config.feature_plan is not None:
            return []  # the plan knows them
        if self._config.debug or self._source is None:
            return []  # whoever debugs would stop in their function again and again
        assert self._config.seed is not None
        try:
            self._needed = find_needed(
                self._training.spec.batches,
                self._source,
                self._features,
                ragged=self._ragged,
                seed=self._config.seed,
            )
        except Exception as error:  # the data may be gone; what was trained is not lost for that
            return [
                f"It is not known which columns the trained model needs: {error} Prediction will want all."
            ]
        return []

    def _snapshot(self, known: Mapping[str, bytes] | None = None) -> Snapshot:
        spec = self._training.spec
        return Snapshot() if spec.zoo is None else take_snapshot(spec.zoo, list(spec.files), known)

    def _about(
        self, job: dict[str, Any], metrics: Mapping[str, float], steps: int, chosen: str
    ) -> TrainedModel:
        config, names = self._config, self._training.spec.names
        plan = config.feature_plan
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return TrainedModel(
            docker_commit_id=os.environ.get(IMAGE_VARIABLE, ""),
            model_def=config.model_def or "",
            model_def_params=_written(config.model_params),
            input_function=config.dataset_fn or names.get("dataset_fn", ""),
            loss=config.loss or names.get("loss", ""),
            optimizer=config.optimizer or names.get("optimizer", ""),
            elasticdl_version=version("elasticdl"),
            versions=_versions(),
            job=json.dumps(job),
            metrics={name: float(value) for name, value in metrics.items()},
            steps=steps,
            created=now.replace("+00:00", "Z"),
            chosen=chosen,
            columns=_names_of(plan) if plan is not None else self._columns,
            needed_columns=self._needed.columns if plan is None else _names_of(plan),
            row_columns=self._needed.row,
        )

    @property
    def _columns(self) -> tuple[str, ...]:
        return (self._source.metadata.column_names if self._source else None) or ()

    def _job(self) -> tuple[dict[str, Any], list[str]]:
        """The options, parameters as they are written on a command line; and which cannot be."""
        job: dict[str, Any] = {"model": self._training.spec.name, "objects": self._objects}
        if self._config.feature_plan is not None:
            job["feature_plan"] = self._config.feature_plan
        job |= self._more_about
        remarks = []
        for name in _OF_THE_JOB:
            value = getattr(self._config, name)
            if value is None or value == {}:
                continue
            if isinstance(value, dict) and not _is_literal(value):
                remarks.append(
                    f"The trained model lacks its {name}: they hold something else than numbers, strings "
                    "and lists of them. Give them again when the model is used."
                )
                continue
            value = _written(value) if isinstance(value, dict) else value
            job[name] = _CREDENTIALS.sub("", value) if isinstance(value, str) else value
        return job, remarks


@contextmanager
def _holding(
    training: TrainingModel, values: Mapping[str, Any] | None
) -> Iterator[Mapping[str, Any]]:
    """The model with these values in it, and its own again after."""
    own = training.save()
    if values is None:
        yield own
        return
    training.load(values, only_model=True)
    try:
        yield values
    finally:
        training.load(own)


def _features(element: Any, element_spec: Any) -> Any:
    """The specs of the features, from the pipeline where it knows their shapes."""
    import tensorflow as tf

    seen = tf.nest.map_structure(tf.type_spec_from_value, split_minibatch(element).features)
    if element_spec is None:
        return seen
    known = split_minibatch(element_spec).features

    def choose(spec: Any, fallback: Any) -> Any:
        return fallback if spec.shape.rank is None else spec

    return tf.nest.map_structure(choose, known, seen)


def _names_of(plan: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(column["name"] for column in plan["columns"])


def _written(params: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in params.items())


def _is_literal(params: dict[str, Any]) -> bool:
    """Whether what is written down can be read again."""
    try:
        return parse_params("params", _written(params)) == params
    except (InvalidValue, ValueError):  # numpy has no truth for the equality of arrays
        return False


def _versions() -> dict[str, str]:
    import keras
    import numpy as np
    import tensorflow as tf

    return {
        "python": platform.python_version(),
        "tensorflow": str(tf.__version__),
        "keras": str(keras.__version__),
        "numpy": str(np.__version__),
    }
