"""The parts of a job, put together from its config: spec, sources, pipelines, ledgers, weights."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from elasticdl.artifacts.bare_model import load_bare_model
from elasticdl.artifacts.checkpoint import find_checkpoint
from elasticdl.artifacts.stored_model import load_parameters
from elasticdl.contract.load import load_spec
from elasticdl.contract.mode import Mode
from elasticdl.contract.pieces import OVERRIDES
from elasticdl.contract.spec import Spec
from elasticdl.contract.tables import load_table_spec
from elasticdl.data.ledger import Ledger
from elasticdl.data.pipeline import Pipeline
from elasticdl.data.registry import open_source
from elasticdl.data.source import Source
from elasticdl.engine.best import Best
from elasticdl.engine.evaluator import Evaluator
from elasticdl.engine.explain import UnevenShapes, reading
from elasticdl.engine.inputs import split_minibatch
from elasticdl.engine.randomness import seed_everything
from elasticdl.engine.state import TrainingModel
from elasticdl.engine.trainer import Plan
from elasticdl.errors import DataError, InvalidValue
from elasticdl.job.config import JobConfig
from elasticdl.quiet import load_tensorflow
from elasticdl.runtime.debug import debugging
from elasticdl.storage import place
from elasticdl.tabular.plan import FeaturePlan

__all__ = [
    "check_given",
    "first_minibatch",
    "load",
    "make_best",
    "make_evaluator",
    "make_ledger",
    "make_pipeline",
    "make_plan",
    "open_data",
    "records_per_lease",
    "start_from",
    "started",
]

PEEK_RECORDS = 256
"""Enough records to see whether their shapes vary."""


TASKS_FOR_WORKERS = 32
"""An epoch that workers share has at least so many tasks, unless its data is small."""


def check_given(config: JobConfig, objects: Mapping[str, Any], data: str) -> None:
    """What must be given is, said before TensorFlow takes its seconds to load."""
    if config.model_def is None and "model" not in objects and not config.trained_model:
        raise InvalidValue(
            "No model was given. Name one with --model_def=file.name, in --model_zoo=DIR."
        )
    if getattr(config, data) is None and data not in objects:
        raise InvalidValue(f"No data was given. Give it with --{data}=PATH.")


@contextlib.contextmanager
def started(config: JobConfig) -> Iterator[None]:
    """TensorFlow loaded and seeded; with `--debug`, running eagerly until the job is done."""
    load_tensorflow()
    assert config.seed is not None
    seed_everything(config.seed)
    with debugging(config.debug):
        yield


def load(config: JobConfig, objects: Mapping[str, Any]) -> Spec:
    """What the user wrote. `objects` are real ones in the place of the config's names."""
    given: dict[str, Any] = {
        "model_zoo": config.model_zoo,
        "model_params": config.model_params,
        "training": config.command == "train",
        **{name: objects.get(name, getattr(config, name)) for name in OVERRIDES},
    }
    if config.feature_plan is not None:
        plan = FeaturePlan.from_json(config.feature_plan)
        return load_table_spec(_model(config, objects), plan, **given)
    return load_spec(_model(config, objects), **given)


def _model(config: JobConfig, objects: Mapping[str, Any]) -> Any:
    """An object, a name, or the model that is saved whole in a trained model."""
    model = objects.get("model", config.model_def)
    if model is None and config.trained_model:
        return load_bare_model(Path(config.trained_model), trust=config.trust)
    return model


def open_data(
    config: JobConfig, spec: Spec, name: str, objects: Mapping[str, Any]
) -> Source | None:
    """The source that an option names; None when it was not given."""
    data = objects.get(name, getattr(config, name))
    if data is None:
        return None
    return open_source(
        data,
        config.data_reader_params,
        custom_reader=spec.data_reader,
        records_per_task=config.minibatch_size * config.num_minibatches_per_task,
        offers=_planned(config, name),
    )


def _planned(config: JobConfig, name: str) -> Mapping[str, Any]:
    """Of a table, the plan says what is read of files, and as what."""
    if config.feature_plan is None:
        return {}
    plan = FeaturePlan.from_json(config.feature_plan)
    wants_label = name != "prediction_data" and plan.label is not None
    columns = [asdict(column) for column in (*plan.columns, *plan.label_columns[:wants_label])]
    order = {"order_seed": config.seed} if name == "training_data" else {}
    return {"table": columns, "short_names": True, **order}


@contextlib.contextmanager
def make_pipeline(config: JobConfig, spec: Spec, source: Source, mode: Mode) -> Iterator[Pipeline]:
    assert config.seed is not None
    pipeline = Pipeline(source, spec.batches, mode, config.minibatch_size, config.seed)
    try:
        yield pipeline
    finally:
        pipeline.close(wait=not isinstance(sys.exception(), KeyboardInterrupt))


@contextlib.contextmanager
def make_evaluator(
    config: JobConfig, training: TrainingModel, source: Source | None, best: Best | None = None
) -> Iterator[Evaluator | None]:
    """An evaluator whose data was looked at: faults in it are found before the training."""
    if source is None:
        yield None
        return
    with make_pipeline(config, training.spec, source, Mode.EVALUATION) as pipeline:
        element = first_minibatch(config, pipeline, source)
        training.check(split_minibatch(element))
        evaluator = Evaluator(training, pipeline, lambda: make_ledger(config, source))
        if best is not None:
            best.check(evaluator.names(element))
        yield evaluator


def make_best(config: JobConfig, validation: Source | None) -> Best | None:
    """Who keeps the best version, when one was asked for."""
    if not config.export_metric:
        return None
    if validation is None:
        raise InvalidValue(
            f"--export_metric={config.export_metric} needs evaluations. Give --validation_data."
        )
    return Best(config.export_metric, config.export_mode)


def make_ledger(
    config: JobConfig, source: Source, num_epochs: int = 1, *, shuffle: bool = False
) -> Ledger:
    assert config.seed is not None
    return Ledger(
        source.shards,
        records_per_lease=records_per_lease(config, source),
        num_epochs=num_epochs,
        seed=config.seed,
        shuffle=shuffle,
    )


def records_per_lease(config: JobConfig, source: Source) -> int:
    """How many records a task has, in `make_ledger`."""
    return config.minibatch_size * _minibatches_per_task(config, source)


def _minibatches_per_task(config: JobConfig, source: Source) -> int:
    """Workers share an epoch task by task: there must be enough of them, whatever the number of workers.

    With a global batch all are at one task together, and in Local's order of records.
    """
    is_alone = config.distribution_strategy == "Local" or config.global_batch_size is not None
    if is_alone or "num_minibatches_per_task" in config.given:
        return config.num_minibatches_per_task
    minibatches = sum(shard.num_records for shard in source.shards) // config.minibatch_size
    # Of little data, fewer and not the shortest: to begin one takes its time too.
    enough = max(minibatches // TASKS_FOR_WORKERS, min(8, minibatches // 8))
    return max(1, min(config.num_minibatches_per_task, enough))


def first_minibatch(config: JobConfig, pipeline: Pipeline, source: Source) -> Any:
    """A minibatch to build the model on: of a few records if that gives one, else of whole leases."""
    few = Ledger(source.shards[:1], records_per_lease=max(config.minibatch_size, PEEK_RECORDS))
    first = few.lease()
    assert first is not None
    try:
        with reading(pipeline, first):
            minibatches = list(pipeline.elements(first))
    except UnevenShapes:
        if pipeline.ragged:
            raise
        pipeline.ragged = True
        return first_minibatch(config, pipeline, source)
    if minibatches:
        return minibatches[0]
    ledger = make_ledger(config, source)
    while lease := ledger.lease():
        with reading(pipeline, lease):
            for minibatch in pipeline.elements(lease):
                return minibatch
    raise DataError(
        f"The dataset function left none of the {ledger.records_per_epoch} records. "
        "Look at what it filters out."
    )


def make_plan(config: JobConfig, *, each_epoch: bool = False) -> Plan:
    return Plan(
        evaluation_steps=config.evaluation_steps,
        evaluation_start_delay_s=config.evaluation_start_delay_secs,
        evaluation_throttle_s=config.evaluation_throttle_secs,
        checkpoint_steps=config.checkpoint_steps,
        checkpoint_each_epoch=each_epoch,
        max_steps=config.max_step,
        log_steps=config.log_loss_steps,
    )


def start_from(config: JobConfig, objects: Mapping[str, Any], training: TrainingModel) -> None:
    """Take over the weights that were asked for. An evaluation needs some."""
    import keras

    if config.checkpoint_dir_for_init:
        checkpoint = find_checkpoint(place(config.checkpoint_dir_for_init))
        training.load(checkpoint.tensors, only_model=True)
    elif config.trained_model:
        # Without a name or an object, the model was read whole, with its weights.
        if config.model_def is not None or "model" in objects:
            training.load(load_parameters(Path(config.trained_model)), only_model=True)
    elif config.command == "evaluate" and not isinstance(objects.get("model"), keras.Model):
        raise InvalidValue(
            "No weights were given. Name the --output of a training with --trained_model=DIR, or a "
            "directory of checkpoints with --checkpoint_dir_for_init=DIR."
        )
