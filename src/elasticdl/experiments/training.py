"""The training of an experiment: its compiled model on its own minibatches, in the engine's one loop."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from elasticdl.data.ledger import Ledger
from elasticdl.engine.best import Best
from elasticdl.engine.callbacks import Callbacks
from elasticdl.engine.evaluator import Evaluator
from elasticdl.engine.trainer import Plan, Trainer
from elasticdl.engine.work import LeaseWork
from elasticdl.errors import DataError, InvalidValue, UnknownName
from elasticdl.experiments.config import RunConfig
from elasticdl.experiments.parts import check_fits, first_of, one_pass
from elasticdl.job.config import JobConfig
from elasticdl.runtime.journal import Journal
from elasticdl.runtime.run import Run
from elasticdl.storage import children

if TYPE_CHECKING:
    from elasticdl.experiments.session import Session

__all__ = ["Training", "job_of", "logged_names"]


ANEW = "begin anew with --overwrite"


class Training:
    """Put together when it is made, so that faults are found before anything is written; then run once."""

    def __init__(self, session: Session) -> None:
        config, parts = session.config, session.parts
        self._session = session
        self._epochs = 1 if session.few else config.epochs
        self.status = "failed"
        self._made = list(parts.spec.callbacks())
        stream = parts.training
        self.model = parts.trained_on(first_of(stream), "training")
        evaluator = Evaluator(self.model, parts.validation, lambda: one_pass(parts.validation))
        element = first_of(parts.validation)
        check_fits(self.model, parts.validation)
        self.best = Best(config.export.metric, config.export.mode, by_epoch=True)
        self._check_metric(logged_names(evaluator.names(element)))
        self._ledger = Ledger(
            [stream.shard],
            records_per_lease=stream.shard.num_records,
            num_epochs=self._epochs,
            seed=config.seed,
        )
        self._evaluator = evaluator
        self._callbacks = Callbacks(self._made, self.model.model, epochs=self._epochs, verbose=0)
        self.trainer: Trainer

    def _check_metric(self, names: list[str]) -> None:
        """A callback of the user's own may log what nobody else knows: then the first epoch tells."""
        own = [c for c in self._made if not type(c).__module__.startswith("keras.")]
        try:
            self.best.check(names)
        except UnknownName:
            if not own:
                raise

    def run(self, journal: Journal) -> None:
        """Train to the end, or to a checkpoint when asked to stop."""
        session, job = self._session, self._job()
        if job.resume:
            job = replace(job, num_epochs=self._epochs_to_go_on(job.num_epochs))
        with Run(job, session.directory, session.store, session.interrupt, journal) as run:
            self.trainer = Trainer(
                self.model,
                LeaseWork(self.model, session.parts.training, self._ledger),
                evaluator=self._evaluator,
                callbacks=self._callbacks,
                checkpointer=run,
                plan=Plan(checkpoint_each_epoch=True, log_steps=job.log_loss_steps),
                emit=run.emit,
                best=self.best,
                interrupted=session.interrupt.is_set,
            )
            session.interrupt.listen()
            with _saying_how_to_begin_anew():
                run.train(
                    self.trainer,
                    self.model,
                    self._finish,
                    records=session.parts.training.num_points,
                )
            self.status = run.status

    def _epochs_to_go_on(self, wanted: int) -> int:
        """Refuse to go on with what would be another training; no epoch that was begun is cut off."""
        checkpoint, _ = self._session.store.latest()
        if checkpoint is None:
            return wanted
        config, ledger = self._session.config, checkpoint.state["ledger"]
        ((_, batches),) = ledger["shards"]
        now = self._session.parts.training.shard.num_records
        if checkpoint.state["seed"] != config.seed:
            raise InvalidValue(
                f"The run began with the seed {checkpoint.state['seed']} and cannot go on with {config.seed}. "
                f"Give the seed that it began with, or {ANEW}."
            )
        if batches != now:
            raise InvalidValue(
                f"An epoch of the run had {batches} batches when it began and has {now} now: the batch_size or the "
                f"data is another. Go on with what it began with, or {ANEW}."
            )
        done = ledger["epoch"] + bool(ledger["applied"] or ledger["started"])
        if done > wanted:
            self._session.warn(
                f"The run has done more epochs than the config says, {done} instead of {wanted}: all are kept."
            )
        return int(max(done, wanted))

    def _finish(self) -> list[str]:
        """What was stopped in the middle of an epoch is saved like the end of one."""
        if self.trainer.saved_at < self.trainer.progress.step:
            self.trainer.save_checkpoint()
        if self.best.value is None:
            return [
                f"{self.best.metric} was never a number, so the last epoch is the one to be exported."
            ]
        return []

    def _job(self) -> JobConfig:
        session = self._session
        return job_of(
            session.config,
            num_epochs=self._epochs,
            log_level=session.log_level,
            resume=bool(children(session.directory.checkpoints)),
        )


@contextlib.contextmanager
def _saying_how_to_begin_anew() -> Iterator[None]:
    """A model that was changed since does not fit its checkpoint."""
    try:
        yield
    except DataError as error:
        if "saved weights" in str(error):
            error.add_note(f"Or {ANEW}.")
        raise


def job_of(config: RunConfig, **more: Any) -> JobConfig:
    """What the engine needs to know of a config."""
    known: dict[str, Any] = {
        "num_epochs": config.epochs,
        "seed": config.seed,
        "minibatch_size": config.batch_size,
        "job_name": config.project_name,
    }
    return replace(JobConfig.parse("train", {}), **(known | more))


def logged_names(evaluated: list[str]) -> list[str]:
    """What an epoch logs: the same metrics of the training and of the validation."""
    return [*evaluated, *(f"val_{name}" for name in evaluated)]
