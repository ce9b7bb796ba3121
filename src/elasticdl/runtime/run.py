"""A training that is written down: its events, its checkpoints, its trained model, its end."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterator
from typing import Any

from elasticdl.artifacts.background import Background
from elasticdl.artifacts.checkpoint import Checkpoints
from elasticdl.artifacts.mirror import Mirror
from elasticdl.artifacts.run_directory import RunDirectory
from elasticdl.engine.best import Best
from elasticdl.engine.state import TrainingModel
from elasticdl.engine.trainer import Trainer
from elasticdl.job.config import JobConfig
from elasticdl.runtime import earlier
from elasticdl.runtime.interrupt import Interrupt
from elasticdl.runtime.trained import TrainedModels
from elasticdl.storage import place
from elasticdl.tracking.console import make_progress
from elasticdl.tracking.events import EventFile, Events
from elasticdl.tracking.tensorboard import TensorBoard

__all__ = ["Run", "job_name"]


class Run:
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
            job=job_name(config),
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

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        with self._mirror, contextlib.closing(self._events):
            if isinstance(error, KeyboardInterrupt):
                return
            with contextlib.suppress(Exception):  # what failed first is the thing to tell
                self._writing.wait()
            if error is not None:
                self.emit("run_ended", status="failed", error=f"{type(error).__name__}: {error}")


def job_name(config: JobConfig) -> str:
    return config.job_name or (config.model_def or "job").split(".")[0]


def _idle_options(config: JobConfig) -> list[str]:
    if config.evaluation_steps and not config.validation_data:
        return ["evaluation_steps has no effect without validation_data."]
    return []
