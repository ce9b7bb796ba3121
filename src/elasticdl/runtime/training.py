"""The parts of a training, put together and checked before anything is written: the same for every runtime."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from elasticdl.contract.mode import Mode
from elasticdl.contract.spec import Spec
from elasticdl.data.ledger import Ledger
from elasticdl.data.pipeline import Pipeline
from elasticdl.data.source import Source
from elasticdl.engine.best import Best
from elasticdl.engine.callbacks import Callbacks
from elasticdl.engine.evaluator import Evaluator
from elasticdl.engine.state import TrainingModel
from elasticdl.job.config import JobConfig
from elasticdl.runtime import assembly
from elasticdl.runtime.columns import Columns, open_like_training
from elasticdl.runtime.trained import TrainedModels

__all__ = ["TrainingParts", "training_parts"]


@dataclass(frozen=True)
class TrainingParts:
    """What a trainer is made of."""

    training: TrainingModel
    element: Any
    """The first minibatch."""
    pipeline: Pipeline
    ledger: Ledger
    callbacks: Callbacks
    evaluator: Evaluator | None
    best: Best | None
    models: TrainedModels


@contextmanager
def training_parts(
    config: JobConfig, objects: Mapping[str, Any], leads: Callable[[], bool] | None = None
) -> Iterator[TrainingParts]:
    """Load what the user wrote, open the data, build the model. TensorFlow is loaded already.

    `leads` says, where several processes train together, whether this one leads, and so lets callbacks write.
    """
    spec = assembly.load(config, objects)
    source = assembly.open_data(config, spec, "training_data", objects)
    assert source is not None
    validation = _open_validation(config, spec, objects, source)
    with assembly.make_pipeline(config, spec, source, Mode.TRAINING) as pipeline:
        element = assembly.first_minibatch(config, pipeline, source)
        training = TrainingModel(spec, element)
        assembly.start_from(config, objects, training)
        best = assembly.make_best(config, validation)
        models = TrainedModels(
            config,
            training,
            element=element,
            element_spec=pipeline.element_spec,
            objects=objects,
            source=source,
            ragged=pipeline.ragged,
        )
        callbacks = Callbacks(
            spec.callbacks(), training.model, leads=leads, epochs=config.num_epochs, verbose=0
        )
        ledger = assembly.make_ledger(
            config, source, config.num_epochs, shuffle=config.shuffle_tasks
        )
        with assembly.make_evaluator(config, training, validation, best) as evaluator:
            yield TrainingParts(
                training, element, pipeline, ledger, callbacks, evaluator, best, models
            )


def _open_validation(
    config: JobConfig, spec: Spec, objects: Mapping[str, Any], training: Source
) -> Source | None:
    """The validation data, if there is some, with the columns of the training data in their order."""
    name = "validation_data"
    if getattr(config, name) is None and name not in objects:
        return None
    columns = Columns.all_of(training.metadata.column_names)
    return open_like_training(config, spec, name, objects, columns)
