"""Running a job in this process: load, check, train, save. For debugging and for one machine."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from elasticdl.artifacts.checkpoint import Checkpoints
from elasticdl.artifacts.run_directory import RunDirectory
from elasticdl.contract.mode import Mode
from elasticdl.contract.spec import Spec
from elasticdl.data.source import Source
from elasticdl.engine.callbacks import Callbacks
from elasticdl.engine.evaluator import Evaluation, Evaluator
from elasticdl.engine.state import TrainingModel
from elasticdl.engine.trainer import Trainer
from elasticdl.errors import InvalidValue
from elasticdl.job.config import JobConfig
from elasticdl.runtime import assembly, earlier
from elasticdl.runtime.columns import (
    Columns,
    open_like_training,
    telling_what_is_missing,
    trained_columns,
)
from elasticdl.runtime.interrupt import Interrupt
from elasticdl.runtime.journal import Journal
from elasticdl.runtime.next_steps import next_steps
from elasticdl.runtime.result import Result
from elasticdl.runtime.run import Run, job_name
from elasticdl.runtime.standard_input import with_schema
from elasticdl.runtime.trained import TrainedModels
from elasticdl.storage import place
from elasticdl.tracking.console import make_progress
from elasticdl.tracking.events import Events, EventSink

__all__ = ["evaluate", "train"]


def train(config: JobConfig, objects: Mapping[str, Any]) -> Result:
    """Train a model. `objects` are real Python objects in the place of the config's names."""
    began = time.monotonic()
    directory = _output(config)
    directory.check(resume=config.resume, overwrite=config.overwrite)
    config = earlier.complete(config, directory)
    store = Checkpoints(
        place(config.checkpoint_dir or directory.checkpoints), keep=config.keep_checkpoint_max
    )
    if config.checkpoint_dir and not config.resume and not config.overwrite:
        store.check_empty()
    assembly.check_given(config, objects, "training_data")
    asked = config.to_json()
    if config.trained_model:
        config = earlier.with_zoo(earlier.as_trained(config, objects))
    config = with_schema(config, objects)
    with Interrupt(objects.get("is_cancelled")) as interrupt, assembly.started(config):
        spec = assembly.load(config, objects)
        source = assembly.open_data(config, spec, "training_data", objects)
        assert source is not None
        validation = _open_validation(config, spec, objects, source)
        with assembly.make_pipeline(config, spec, source, Mode.TRAINING) as pipeline:
            element = assembly.first_minibatch(config, pipeline, source)
            training = TrainingModel(spec, element)
            assembly.start_from(config, objects, training)
            callbacks = Callbacks(
                spec.callbacks(), training.model, epochs=config.num_epochs, verbose=0
            )
            ledger = assembly.make_ledger(
                config, source, config.num_epochs, shuffle=config.shuffle_tasks
            )
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
            with (
                assembly.make_evaluator(config, training, validation, best) as evaluator,
                directory.held(resume=config.resume, job=asked),
                _journal(config, directory, objects.get("listener")) as journal,
                Run(config, directory, store, interrupt, journal) as run,
            ):
                trainer = Trainer(
                    training,
                    pipeline,
                    ledger,
                    evaluator=evaluator,
                    callbacks=callbacks,
                    checkpointer=run,
                    plan=assembly.make_plan(config),
                    emit=run.emit,
                    best=best,
                    interrupted=interrupt.is_set,
                )
                interrupt.listen()
                run.train(
                    trainer,
                    training,
                    lambda: models.save_end(directory, trainer.progress, best),
                    records=ledger.records_per_epoch,
                )
                run.end(trainer)
    return Result(
        command="train",
        status=run.status,
        steps=trainer.progress.step,
        history=trainer.progress.history,
        metrics=trainer.progress.metrics,
        output=directory.path,
        model_path=directory.model if run.status in ("completed", "stopped") else None,
        seconds=time.monotonic() - began,
        next_steps=next_steps(config, directory, run.status),
    )


def evaluate(config: JobConfig, objects: Mapping[str, Any]) -> Result:
    """Evaluate a trained model on the validation data."""
    began = time.monotonic()
    columns = trained_columns(config, with_labels=True)
    config = earlier.with_zoo(earlier.as_trained(config, objects))
    config = with_schema(replace(config, seed=config.seed or 0), objects)
    assembly.check_given(config, objects, "validation_data")
    with assembly.started(config):
        spec = assembly.load(config, objects)
        source = open_like_training(config, spec, "validation_data", objects, columns)
        with assembly.make_pipeline(config, spec, source, Mode.EVALUATION) as pipeline:
            with telling_what_is_missing(source, columns):
                element = assembly.first_minibatch(config, pipeline, source)
            training = TrainingModel(spec, element, trains=False)
            assembly.start_from(config, objects, training)
            evaluator = Evaluator(training, pipeline, lambda: assembly.make_ledger(config, source))
            evaluation = _evaluate(config, evaluator)
    return Result(
        command="evaluate",
        status="completed",
        metrics=evaluation.metrics,
        seconds=time.monotonic() - began,
    )


def _journal(
    config: JobConfig, directory: RunDirectory, listener: EventSink | None = None
) -> Journal:
    curves = place(config.tensorboard_log_dir or directory.tensorboard)
    more = [] if listener is None else [listener]
    return Journal(directory.events, curves, config.log_level, lambda file: more)


def _evaluate(config: JobConfig, evaluator: Evaluator) -> Evaluation:
    events = Events(*make_progress(config.log_level))
    events.emit("run_started", command="evaluate")
    try:
        evaluation = evaluator.evaluate(
            lambda done, total: events.emit("evaluation_progress", records=done, total=total)
        )
        assert evaluation is not None, "nothing interrupts it"
        return evaluation
    finally:
        events.close()


def _open_validation(
    config: JobConfig, spec: Spec, objects: Mapping[str, Any], training: Source
) -> Source | None:
    """The validation data, if there is some, with the columns of the training data in their order."""
    name = "validation_data"
    if getattr(config, name) is None and name not in objects:
        return None
    columns = Columns.all_of(training.metadata.column_names)
    return open_like_training(config, spec, name, objects, columns)


def _output(config: JobConfig) -> RunDirectory:
    if config.output:
        return RunDirectory(config.output)
    if config.resume:
        raise InvalidValue("Name the run to resume with --output=DIR.")
    return RunDirectory.fresh(job_name(config))
