"""A training that is written down: its events, its checkpoints, its trained model, its end."""

from __future__ import annotations

import contextlib
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from elasticdl.artifacts.background import Background
from elasticdl.artifacts.checkpoint import Checkpoints
from elasticdl.artifacts.run_directory import RunDirectory
from elasticdl.engine.state import TrainingModel
from elasticdl.engine.trainer import Trainer
from elasticdl.job.config import JobConfig
from elasticdl.runtime import earlier
from elasticdl.runtime.interrupt import Interrupt
from elasticdl.runtime.journal import Journal
from elasticdl.storage import place

__all__ = ["Run", "job_name"]


SHARE = 29
"""So many times as long as a checkpoint took, there is none for the mere end of an epoch."""


class Run:
    """A training that is written down: its events, its checkpoints, its end.

    with Journal(...) as journal, Run(config, directory, store, interrupt, journal) as run:
        run.train(trainer, training, finish, records=1000)
        run.end(trainer)
    """

    def __init__(
        self,
        config: JobConfig,
        directory: RunDirectory,
        store: Checkpoints,
        interrupt: Interrupt,
        journal: Journal,
    ) -> None:
        self.status = "failed"
        self._interrupt = interrupt
        self._config = config
        self._directory = directory
        self._store = store
        self._writing = Background()
        self._rested = 0.0
        self._journal = journal

    def train(
        self,
        trainer: Trainer,
        training: TrainingModel,
        finish: Callable[[], list[str]],
        records: int,
    ) -> None:
        """From the start, or from where the run left off, to the end or to a checkpoint to go on from.

        `finish` saves what was trained, and returns what a user should know of it.
        """
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
                remarks = finish()
            for message in remarks:
                self.emit("warning", message=message)
            self.status = "completed" if trainer.stop_reason == "completed" else "stopped"

    def end(self, trainer: Trainer) -> None:
        """Say how it ended."""
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
            if self._config.feature_plan is not None:
                raise  # the rows of a statement are gone with it: there is nothing to go on with
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
        self._journal.emit(event, **fields)

    is_mine = True

    @property
    def rests(self) -> bool:
        """Whether it is too soon for another checkpoint: they are to take a thirtieth of the time at most."""
        return self._writing.is_busy or time.monotonic() < self._rested

    def save(self, step: int, tensors: dict[str, Any], state: dict[str, Any]) -> None:
        """A checkpoint: written in the background, told of when it is there."""
        # A copy, since the training goes on; and the seed, by which a run is known.
        state = json.loads(json.dumps({**state, "seed": self._config.seed}))
        occasion = "steps" if self._config.checkpoint_steps else "epoch"

        began = time.monotonic()

        def write() -> None:
            path = self._store.save(step, tensors, state)
            self._journal.emit("checkpoint", step=step, path=str(path), occasion=occasion)
            now = time.monotonic()
            self._rested = now + SHARE * (now - began)

        self._writing.submit(write)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
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
