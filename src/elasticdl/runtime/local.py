"""Running a job in this process: load, check, train, save. The runtime for debugging and for one machine."""

from __future__ import annotations

import contextlib
import json
import random
import shlex
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from elasticdl.artifacts.checkpoint import Checkpoints
from elasticdl.artifacts.run_directory import RunDirectory
from elasticdl.artifacts.trained_model import load_parameters, save_trained_model
from elasticdl.contract.load import load_spec
from elasticdl.contract.mode import Mode
from elasticdl.contract.spec import Spec
from elasticdl.data.ledger import Ledger
from elasticdl.data.pipeline import Pipeline
from elasticdl.data.registry import open_source
from elasticdl.data.source import Source
from elasticdl.engine.callbacks import Callbacks
from elasticdl.engine.evaluator import Evaluation, Evaluator
from elasticdl.engine.explain import UnevenShapes, reading
from elasticdl.engine.state import TrainingModel, seed_everything
from elasticdl.engine.trainer import Plan, Trainer
from elasticdl.errors import DataError, InvalidValue, NotFound
from elasticdl.job.config import JobConfig
from elasticdl.quiet import load_tensorflow
from elasticdl.runtime.debug import debugging
from elasticdl.runtime.interrupt import Interrupt
from elasticdl.runtime.result import Result
from elasticdl.tracking.console import make_progress
from elasticdl.tracking.events import EventFile, Events
from elasticdl.tracking.tensorboard import TensorBoard

__all__ = ["evaluate", "train"]

MODEL_OPTIONS = (
    "model_zoo",
    "model_def",
    "model_params",
    "dataset_fn",
    "loss",
    "eval_metrics_fn",
    "custom_data_reader",
    "data_reader_params",
)
"""The options that say what a model is and how it reads its records."""

PEEK_RECORDS = 256
"""Enough records to see whether their shapes vary."""


def train(config: JobConfig, objects: Mapping[str, Any]) -> Result:
    """Train a model. `objects` are real Python objects in the place of the config's names."""
    directory = _output(config)
    directory.check(resume=config.resume, overwrite=config.overwrite)
    config = _with_seed(config, directory)
    assert config.seed is not None
    with _started(config):
        spec = _load(config, objects)
        source = _open(config, spec, "training_data", objects)
        validation = _open_optional(config, spec, "validation_data", objects)
        with _pipeline(config, spec, source, Mode.TRAINING) as pipeline:
            training = TrainingModel(spec, _first_minibatch(pipeline, source, config))
            _start_from(config, training)
            with (
                _evaluator(config, training, validation, pipeline.ragged) as evaluator,
                directory.held(resume=config.resume, job=config.to_json()),
            ):
                return _train(config, directory, training, pipeline, source, evaluator)


def _train(
    config: JobConfig,
    directory: RunDirectory,
    training: TrainingModel,
    pipeline: Pipeline,
    source: Source,
    evaluator: Evaluator | None,
) -> Result:
    started = time.monotonic()
    curves = (
        Path(config.tensorboard_log_dir) if config.tensorboard_log_dir else directory.tensorboard
    )
    progress = make_progress(config.log_level)
    events = Events(EventFile(directory.events), TensorBoard(curves), *progress)
    ledger = _ledger(config, source, config.num_epochs, shuffle=config.shuffle_tasks)
    checkpoints = _EmittingCheckpoints(_checkpoint_directory(config, directory), config, events)
    status = "failed"
    with Interrupt() as interrupt:
        try:
            trainer = Trainer(
                training,
                pipeline,
                ledger,
                evaluator=evaluator,
                callbacks=Callbacks(
                    training.spec.callbacks(), training.model, epochs=config.num_epochs, verbose=0
                ),
                checkpointer=checkpoints,
                plan=_plan(config),
                emit=events.emit,
                interrupted=interrupt.is_set,
            )
            if config.resume:
                _resume(trainer, checkpoints, events)
            events.emit(
                "run_started",
                command="train",
                job=_job_name(config),
                model=training.spec.name,
                records=ledger.records_per_epoch,
                num_epochs=config.num_epochs,
                step=trainer.progress.step,
                seed=config.seed,
            )
            trainer.train()
            if trainer.stop_reason == "interrupted":
                status = "interrupted"
                trainer.save_checkpoint()
            else:
                save_trained_model(directory.model, training.model, training.save())
                status = "completed" if trainer.stop_reason == "completed" else "stopped"
        except BaseException as error:
            events.emit("run_ended", status=status, error=f"{type(error).__name__}: {error}")
            raise
        else:
            events.emit(
                "run_ended", status=status, reason=trainer.stop_reason, step=trainer.progress.step
            )
        finally:
            events.close()
    return Result(
        command="train",
        status=status,
        steps=trainer.progress.step,
        history=trainer.progress.history,
        metrics=trainer.progress.metrics,
        output=directory.path,
        model_path=directory.model if status != "interrupted" else None,
        seconds=time.monotonic() - started,
        next_steps=_next_steps(config, directory, status),
    )


def evaluate(config: JobConfig, objects: Mapping[str, Any]) -> Result:
    """Evaluate a trained model on the validation data."""
    started = time.monotonic()
    config = replace(_as_trained(config, objects), seed=config.seed or 0)
    with _started(config):
        spec = _load(config, objects)
        source = _open(config, spec, "validation_data", objects)
        with _pipeline(config, spec, source, Mode.EVALUATION) as pipeline:
            element = _first_minibatch(pipeline, source, config)
            training = TrainingModel(spec, element, trains=False)
            _start_from(config, training)
            evaluation = _evaluate(config, training, pipeline, source)
    return Result(
        command="evaluate",
        status="completed",
        metrics=evaluation.metrics,
        seconds=time.monotonic() - started,
    )


def _evaluate(
    config: JobConfig, training: TrainingModel, pipeline: Pipeline, source: Source
) -> Evaluation:
    evaluator = Evaluator(training, pipeline, lambda: _ledger(config, source, 1))
    events = Events(*make_progress(config.log_level))
    events.emit("run_started", command="evaluate")
    try:
        return evaluator.evaluate(
            lambda done, total: events.emit("evaluation_progress", records=done, total=total)
        )
    finally:
        events.close()


class _EmittingCheckpoints:
    """Saves checkpoints and tells of them."""

    def __init__(self, directory: Path, config: JobConfig, events: Events) -> None:
        self.store = Checkpoints(directory, keep=config.keep_checkpoint_max)
        self._events = events

    def save(self, step: int, tensors: dict[str, Any], progress: dict[str, Any]) -> None:
        path = self.store.save(step, tensors, progress)
        self._events.emit("checkpoint", step=step, path=str(path))


@contextlib.contextmanager
def _started(config: JobConfig) -> Iterator[None]:
    """TensorFlow loaded and seeded; with `--debug`, running eagerly until the job is done."""
    load_tensorflow()
    assert config.seed is not None
    seed_everything(config.seed)
    with debugging(config.debug):
        yield


def _load(config: JobConfig, objects: Mapping[str, Any]) -> Spec:
    names = (
        "dataset_fn",
        "loss",
        "optimizer",
        "eval_metrics_fn",
        "callbacks",
        "custom_data_reader",
        "prediction_outputs_processor",
    )
    overrides = {name: objects.get(name, getattr(config, name)) for name in names}
    model = objects.get("model", config.model_def)
    if model is None:
        raise InvalidValue(
            "No model was given. Name one with --model_def=file.name, in --model_zoo=DIR."
        )
    return load_spec(
        model,
        model_zoo=config.model_zoo,
        model_params=config.model_params,
        training=config.command == "train",
        **overrides,
    )


def _open(config: JobConfig, spec: Spec, name: str, objects: Mapping[str, Any]) -> Source:
    source = _open_optional(config, spec, name, objects)
    if source is None:
        raise InvalidValue(f"No data was given. Give it with --{name}=PATH.")
    return source


def _open_optional(
    config: JobConfig, spec: Spec, name: str, objects: Mapping[str, Any]
) -> Source | None:
    data = objects.get(name, getattr(config, name))
    if data is None:
        return None
    return open_source(
        data,
        config.data_reader_params,
        custom_reader=spec.data_reader,
        records_per_task=config.minibatch_size * config.num_minibatches_per_task,
    )


@contextlib.contextmanager
def _pipeline(config: JobConfig, spec: Spec, source: Source, mode: Mode) -> Iterator[Pipeline]:
    assert config.seed is not None
    pipeline = Pipeline(source, spec.batches, mode, config.minibatch_size, config.seed)
    try:
        yield pipeline
    finally:
        pipeline.close()


@contextlib.contextmanager
def _evaluator(
    config: JobConfig, training: TrainingModel, source: Source | None, ragged: bool
) -> Iterator[Evaluator | None]:
    if source is None:
        yield None
        return
    with _pipeline(config, training.spec, source, Mode.EVALUATION) as pipeline:
        pipeline.ragged = ragged
        yield Evaluator(training, pipeline, lambda: _ledger(config, source, 1))


def _ledger(config: JobConfig, source: Source, num_epochs: int, shuffle: bool = False) -> Ledger:
    assert config.seed is not None
    return Ledger(
        source.shards,
        records_per_lease=config.minibatch_size * config.num_minibatches_per_task,
        num_epochs=num_epochs,
        seed=config.seed,
        shuffle=shuffle,
    )


def _first_minibatch(pipeline: Pipeline, source: Source, config: JobConfig) -> Any:
    """A minibatch to build the model on: of a few records if that gives one, else of whole leases."""
    few = Ledger(source.shards[:1], records_per_lease=max(config.minibatch_size, PEEK_RECORDS))
    first = few.lease()
    assert first is not None
    try:
        with reading(pipeline):
            minibatches = list(pipeline.open(first))
    except UnevenShapes:
        if pipeline.ragged:
            raise
        pipeline.ragged = True
        return _first_minibatch(pipeline, source, config)
    if minibatches:
        return minibatches[0]
    ledger = _ledger(config, source, 1)
    while lease := ledger.lease():
        with reading(pipeline):
            for minibatch in pipeline.open(lease):
                return minibatch
    raise DataError(
        f"The dataset function left none of the {ledger.records_per_epoch} records. "
        "Look at what it filters out."
    )


def _as_trained(config: JobConfig, objects: Mapping[str, Any]) -> JobConfig:
    """What was not said anew about the model is as it was in its training, from its job.json."""
    job = Path(config.trained_model or "", "job.json")
    if not config.trained_model or config.model_def or "model" in objects or not job.exists():
        return config
    trained = json.loads(job.read_text(encoding="utf-8"))
    kept = {name: trained[name] for name in MODEL_OPTIONS if name in trained}
    return replace(config, **{n: v for n, v in kept.items() if not getattr(config, n)})


def _start_from(config: JobConfig, training: TrainingModel) -> None:
    """Take over weights that were asked for."""
    if config.checkpoint_dir_for_init:
        checkpoint = Checkpoints(Path(config.checkpoint_dir_for_init)).require_latest()
        training.load(checkpoint.tensors, only_model=True)
    elif config.trained_model:
        training.load(load_parameters(Path(config.trained_model)), only_model=True)
    elif config.command == "evaluate":
        raise InvalidValue(
            "No weights were given. Name the --output of a training with --trained_model=DIR, or a "
            "directory of checkpoints with --checkpoint_dir_for_init=DIR."
        )


def _resume(trainer: Trainer, checkpoints: _EmittingCheckpoints, events: Events) -> None:
    checkpoint, faults = checkpoints.store.latest()
    for fault in faults:
        events.emit("warning", message=fault)
    if checkpoint is None:
        raise NotFound(
            "There is no checkpoint to resume from. Start anew with --overwrite, and save some with "
            f"--checkpoint_steps=N. {' '.join(faults)}".strip()
        )
    try:
        trainer.restore(checkpoint.tensors, checkpoint.state)
    except ValueError as error:
        raise InvalidValue(
            f"The checkpoint {checkpoint.path} is of another job: {error}. "
            "Resume with the data and flags that it was started with."
        ) from error


def _plan(config: JobConfig) -> Plan:
    return Plan(
        evaluation_steps=config.evaluation_steps,
        evaluation_start_delay_s=config.evaluation_start_delay_secs,
        evaluation_throttle_s=config.evaluation_throttle_secs,
        checkpoint_steps=config.checkpoint_steps,
        max_steps=config.max_step,
        log_steps=config.log_loss_steps,
    )


def _output(config: JobConfig) -> RunDirectory:
    if config.output:
        return RunDirectory(config.output)
    if config.resume:
        raise InvalidValue("Name the run to resume with --output=DIR.")
    return RunDirectory.fresh(_job_name(config))


def _with_seed(config: JobConfig, directory: RunDirectory) -> JobConfig:
    """The seed that was given, or that of the run that is resumed, or a new one."""
    if config.seed is not None:
        return config
    if config.resume:
        return replace(config, seed=json.loads(directory.job.read_text())["seed"])
    return replace(config, seed=random.SystemRandom().getrandbits(31))


def _checkpoint_directory(config: JobConfig, directory: RunDirectory) -> Path:
    return Path(config.checkpoint_dir) if config.checkpoint_dir else directory.checkpoints


def _job_name(config: JobConfig) -> str:
    return config.job_name or (config.model_def or "job").split(".")[0]


def _next_steps(
    config: JobConfig, directory: RunDirectory, status: str
) -> tuple[tuple[str, str], ...]:
    output = shlex.quote(str(directory.path))
    if status == "interrupted":
        return (("go on", f"the same command with --resume --output={output}"),)
    data = f"--validation_data={shlex.quote(config.validation_data or 'PATH')}"
    return (
        ("see the curves", f"tensorboard --logdir={shlex.quote(str(directory.tensorboard))}"),
        ("evaluate it", f"elasticdl evaluate {data} --trained_model={output}"),
    )
