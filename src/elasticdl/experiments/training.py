"""The training of an experiment: its compiled model on its own minibatches, in the engine's one loop."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from elasticdl.engine.best import Best
from elasticdl.engine.trainer import Trainer
from elasticdl.engine.work import LeaseWork
from elasticdl.errors import DataError, InvalidValue
from elasticdl.experiments.assembled import assemble, never_a_number, plan
from elasticdl.experiments.config import RunConfig
from elasticdl.experiments.elastic import train_with_workers
from elasticdl.job.config import JobConfig
from elasticdl.runtime.elastic.launch import status_of
from elasticdl.runtime.journal import Journal
from elasticdl.runtime.run import Run
from elasticdl.storage import children

if TYPE_CHECKING:
    from elasticdl.experiments.session import Session

__all__ = ["Training", "job_of"]


ANEW = "begin anew with --overwrite"


class Training:
    """Put together when it is made, so that faults are found before anything is written; then run once."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._epochs = 1 if session.few else session.config.epochs
        self._assembled = made = assemble(session.parts, epochs=self._epochs)
        self.model = made.model
        self.best: Best | None = made.best
        """The best epoch; None when only the checkpoints know it."""
        self.status = "failed"
        self.steps = 0
        self.history: dict[str, list[float]] = {}

    def run(self, journal: Journal) -> None:
        """Train to the end, or to a checkpoint when asked to stop."""
        job = self._job()
        if job.resume:
            job = replace(job, num_epochs=self._epochs_to_go_on(job.num_epochs))
        with _saying_how_to_begin_anew():
            if self._session.workers is None:
                self._run_here(job, journal)
            else:
                self._run_with_workers(job, journal)

    def _run_here(self, job: JobConfig, journal: Journal) -> None:
        session, made = self._session, self._assembled
        with Run(job, session.directory, session.store, session.interrupt, journal) as run:
            trainer = Trainer(
                self.model,
                LeaseWork(self.model, session.parts.training, made.ledger),
                evaluator=made.evaluator,
                callbacks=made.callbacks,
                checkpointer=run,
                plan=plan(job.log_loss_steps),
                emit=run.emit,
                best=made.best,
                interrupted=session.interrupt.is_set,
            )
            session.interrupt.keep(trainer)
            session.interrupt.listen()
            run.train(
                trainer,
                self.model,
                lambda: self._finish(trainer),
                records=session.parts.training.num_points,
            )
        self.status = run.status
        self.steps, self.history = trainer.progress.step, trainer.progress.history

    def _run_with_workers(self, job: JobConfig, journal: Journal) -> None:
        """The workers make all of it anew, each for itself; here it was only seen to be right."""
        session = self._session
        outcome, stalls = train_with_workers(session, job, self._epochs, journal)
        self.status = status_of(outcome, session.interrupt)
        self.steps, self.history = outcome["steps"], outcome["history"]
        self.best = None
        session.facts += stalls.facts

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

    def _finish(self, trainer: Trainer) -> list[str]:
        """What was stopped in the middle of an epoch is saved like the end of one."""
        if trainer.saved_at < trainer.progress.step:
            trainer.save_checkpoint()
        return never_a_number(self._assembled.best)

    def _job(self) -> JobConfig:
        session = self._session
        return job_of(
            session.config,
            num_epochs=self._epochs,
            log_level=session.log_level,
            resume=bool(children(session.directory.checkpoints)),
            **(session.workers.options if session.workers is not None else {}),
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
