"""Running a job in this process: load, check, train, save. For debugging and for one machine."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from elasticdl.artifacts.checkpoint import Checkpoints
from elasticdl.artifacts.run_directory import RunDirectory
from elasticdl.engine.evaluator import Evaluation, Evaluator
from elasticdl.engine.trainer import Trainer
from elasticdl.engine.work import LeaseWork
from elasticdl.errors import InvalidValue
from elasticdl.job.config import JobConfig
from elasticdl.runtime import assembly, earlier
from elasticdl.runtime.brief import telling
from elasticdl.runtime.evaluation import opened_evaluation
from elasticdl.runtime.interrupt import Interrupt
from elasticdl.runtime.journal import Journal
from elasticdl.runtime.next_steps import next_steps
from elasticdl.runtime.result import Result
from elasticdl.runtime.run import Run, job_name
from elasticdl.runtime.standard_input import with_schema
from elasticdl.runtime.training import training_parts
from elasticdl.storage import place
from elasticdl.tracking.events import EventSink

__all__ = ["evaluate", "make_journal", "prepare", "run_directory", "train"]


def train(config: JobConfig, objects: Mapping[str, Any]) -> Result:
    """Train a model. `objects` are real Python objects in the place of the config's names."""
    began = time.monotonic()
    directory = run_directory(config)
    asked, config, store = prepare(config, objects, directory)
    with (
        Interrupt(objects.get("is_cancelled")) as interrupt,
        assembly.started(config),
        training_parts(config, objects) as parts,
        directory.held(resume=config.resume, job=asked),
        make_journal(config, directory, objects.get("listener")) as journal,
        Run(config, directory, store, interrupt, journal) as run,
    ):
        trainer = Trainer(
            parts.training,
            LeaseWork(parts.training, parts.pipeline, parts.ledger),
            evaluator=parts.evaluator,
            callbacks=parts.callbacks,
            checkpointer=run,
            plan=assembly.make_plan(config),
            emit=run.emit,
            best=parts.best,
            interrupted=interrupt.is_set,
        )
        interrupt.keep(trainer)
        interrupt.heed(directory.is_asked_to_stop)
        interrupt.listen()
        run.train(
            trainer,
            parts.training,
            lambda: parts.models.save_end(directory, trainer.progress, parts.best),
            records=parts.ledger.records_per_epoch,
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
    with opened_evaluation(config, objects) as opened:
        evaluation = _evaluate(config, opened.evaluator)
    return Result(
        command="evaluate",
        status="completed",
        metrics=evaluation.metrics,
        seconds=time.monotonic() - began,
    )


def make_journal(
    config: JobConfig, directory: RunDirectory, listener: EventSink | None = None
) -> Journal:
    curves = place(config.tensorboard_log_dir or directory.tensorboard)
    more = [] if listener is None else [listener]
    return Journal(directory.events, curves, config.log_level, lambda file: more)


def _evaluate(config: JobConfig, evaluator: Evaluator) -> Evaluation:
    with telling(config) as emit:
        emit("run_started", command="evaluate")
        evaluation = evaluator.evaluate(
            lambda done, total: emit("evaluation_progress", records=done, total=total)
        )
        assert evaluation is not None, "nothing interrupts it"
        return evaluation


def prepare(
    config: JobConfig, objects: Mapping[str, Any], directory: RunDirectory
) -> tuple[dict[str, Any], JobConfig, Checkpoints]:
    """Check a training before TensorFlow is loaded: what was asked for, the whole config, its checkpoints."""
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
    return asked, with_schema(config, objects), store


def run_directory(config: JobConfig) -> RunDirectory:
    if config.output:
        return RunDirectory(config.output)
    if config.resume:
        raise InvalidValue("Name the run to resume with --output=DIR.")
    return RunDirectory.fresh(job_name(config))
