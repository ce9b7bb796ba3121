"""An evaluation that one process can do alone, and several can work on: opened by each."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from elasticdl.contract.mode import Mode
from elasticdl.data.pipeline import Pipeline
from elasticdl.data.source import Source
from elasticdl.engine.evaluator import Evaluator
from elasticdl.engine.state import TrainingModel
from elasticdl.job.config import JobConfig
from elasticdl.runtime import assembly, earlier
from elasticdl.runtime.columns import (
    open_like_training,
    telling_what_is_missing,
    trained_columns,
)
from elasticdl.runtime.standard_input import with_schema

__all__ = ["OpenedEvaluation", "check_evaluation", "opened_evaluation"]


@dataclass(frozen=True)
class OpenedEvaluation:
    """One process' share in an evaluation.

    Attributes:
      config: the job, with what the trained model says of it.
    """

    config: JobConfig
    evaluator: Evaluator
    pipeline: Pipeline
    source: Source

    @property
    def records_per_lease(self) -> int:
        return assembly.records_per_lease(self.config, self.source)


def check_evaluation(config: JobConfig, objects: Mapping[str, Any]) -> JobConfig:
    """The job with what the trained model says of it. Refuses, before TensorFlow is loaded, what cannot be."""
    config = earlier.with_zoo(earlier.as_trained(config, objects))
    config = with_schema(replace(config, seed=config.seed or 0), objects)
    assembly.check_given(config, objects, "validation_data")
    return config


@contextlib.contextmanager
def opened_evaluation(config: JobConfig, objects: Mapping[str, Any]) -> Iterator[OpenedEvaluation]:
    """The model and the data of an evaluation, in this process."""
    columns = trained_columns(config, with_labels=True)
    config = check_evaluation(config, objects)
    with assembly.started(config):
        spec = assembly.load(config, objects)
        source = open_like_training(config, spec, "validation_data", objects, columns)
        with assembly.make_pipeline(config, spec, source, Mode.EVALUATION) as pipeline:
            with telling_what_is_missing(source, columns):
                element = assembly.first_minibatch(config, pipeline, source)
            training = TrainingModel(spec, element, trains=False)
            assembly.start_from(config, objects, training)
            evaluator = Evaluator(training, pipeline, lambda: assembly.make_ledger(config, source))
            yield OpenedEvaluation(config, evaluator, pipeline, source)
