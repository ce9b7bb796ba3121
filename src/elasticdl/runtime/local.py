"""Running a job in this process: load, check, train, save. For debugging and for one machine."""

from __future__ import annotations

import contextlib
import json
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from elasticdl.artifacts.background import Background
from elasticdl.artifacts.checkpoint import Checkpoints
from elasticdl.artifacts.mirror import Mirror
from elasticdl.artifacts.run_directory import RunDirectory
from elasticdl.contract.mode import Mode
from elasticdl.contract.spec import Spec
from elasticdl.data.source import Source
from elasticdl.engine.best import Best
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
from elasticdl.runtime.next_steps import next_steps
from elasticdl.runtime.result import Result
from elasticdl.runtime.trained import TrainedModels
from elasticdl.storage import place
from elasticdl.tracking.console import make_progress
from elasticdl.tracking.events import EventFile, Events
from elasticdl.tracking.tensorboard import TensorBoard

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
    with Interrupt() as interrupt, assembly.started(config):
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
                directory.held(resume=config.resume, job=config.to_json()),
                _Run(config, directory, store, interrupt) as run,
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
                run.train(trainer, training, models, best, records=ledger.records_per_epoch)
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


class _Run:
    """A training that is written down: its events, its checkpoints, its end."""

    def __init__(
        self,
        config: JobConfig,
        directory: RunDirectory,
        store: Checkpoints,
        interrupt: Interrupt,
    ) -> None:
        self.status = "failed"
        self._interrupt = interrupt
        self._config = config
        self._directory = directory
        self._store = store
        self._writing = Background()
        self._mirror = Mirror()
        curves = place(config.tensorboard_log_dir or directory.tensorboard)
        self._events = Events(
            EventFile(self._mirror.path(directory.events)),
            TensorBoard(self._mirror.path(curves)),
            *make_progress(config.log_level),
        )

    def train(
        self,
        trainer: Trainer,
        training: TrainingModel,
        models: TrainedModels,
        best: Best | None,
        records: int,
    ) -> None:
        """From the start, or from where the run left off, to a saved model or a last checkpoint."""
        config = self._config
        if config.resume:
            earlier.restore(trainer, self._store, self._directory, config, self.emit)
        else:
            self._store.clear()
        self.emit(
            "run_started",
            command="train",
            job=_job_name(config),
            model=training.spec.name,
            records=records,
            num_epochs=config.num_epochs,
            step=trainer.progress.step,
            seed=config.seed,
        )
        for message in (*_idle_options(config), *training.warnings):
            self.emit("warning", message=message)
        trainer.train()
        if trainer.stop_reason == "interrupted":
            trainer.save_checkpoint()
            self._writing.wait()
            self.status = self._interrupt.status
        else:
            self._writing.wait()
            with self._rescuing(trainer):
                remarks = models.save_end(self._directory, trainer.progress, best)
            for message in remarks:
                self.emit("warning", message=message)
            self.status = "completed" if trainer.stop_reason == "completed" else "stopped"
        self.emit(
            "run_ended",
            status=self.status,
            reason=trainer.stop_reason,
            step=trainer.progress.step,
        )

    @contextlib.contextmanager
    def _rescuing(self, trainer: Trainer) -> Iterator[None]:
        """A training that is done is not lost because its model has no room: its state goes elsewhere."""
        try:
            yield
        except Exception as error:
            with contextlib.suppress(Exception):
                elsewhere = tempfile.mkdtemp(prefix="elasticdl-rescued-")
                self._store = Checkpoints(place(elsewhere))
                trainer.save_checkpoint()
                self._writing.wait()
                error.add_note(
                    f"The training itself is not lost: its state is in {elsewhere}. When this is mended, "
                    f"resume it with --resume and --checkpoint_dir={elsewhere}."
                )
            raise

    def emit(self, event: str, **fields: Any) -> None:
        """Tell of an event. A checkpoint that could not be written ends the training here."""
        self._writing.check()
        self._events.emit(event, **fields)

    def save(self, step: int, tensors: dict[str, Any], state: dict[str, Any]) -> None:
        """A checkpoint: written in the background, told of when it is there."""
        # A copy, since the training goes on; and the seed, by which a run is known.
        state = json.loads(json.dumps({**state, "seed": self._config.seed}))

        def write() -> None:
            path = self._store.save(step, tensors, state)
            self._events.emit("checkpoint", step=step, path=str(path))

        self._writing.submit(write)

    def __enter__(self) -> _Run:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        with self._mirror, contextlib.closing(self._events):
            if isinstance(error, KeyboardInterrupt):
                return
            with contextlib.suppress(Exception):  # what failed first is the thing to tell
                self._writing.wait()
            if error is not None:
                self.emit("run_ended", status="failed", error=f"{type(error).__name__}: {error}")


def evaluate(config: JobConfig, objects: Mapping[str, Any]) -> Result:
    """Evaluate a trained model on the validation data."""
    began = time.monotonic()
    columns = trained_columns(config, with_labels=True)
    config = earlier.with_zoo(earlier.as_trained(config, objects))
    config = replace(config, seed=config.seed or 0)
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
    return RunDirectory.fresh(_job_name(config))


def _job_name(config: JobConfig) -> str:
    return config.job_name or (config.model_def or "job").split(".")[0]


def _idle_options(config: JobConfig) -> list[str]:
    if config.evaluation_steps and not config.validation_data:
        return ["evaluation_steps has no effect without validation_data."]
    return []
