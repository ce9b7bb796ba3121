"""The training of an experiment: its compiled model on its own minibatches, in the engine's one loop."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from elasticdl.data.ledger import Ledger
from elasticdl.engine.best import Best
from elasticdl.engine.callbacks import Callbacks
from elasticdl.engine.evaluator import Evaluator
from elasticdl.engine.inputs import split_minibatch
from elasticdl.engine.trainer import Plan, Trainer
from elasticdl.experiments.config import RunConfig
from elasticdl.experiments.parts import first_of, one_pass
from elasticdl.job.config import JobConfig
from elasticdl.runtime.journal import Journal
from elasticdl.runtime.run import Run
from elasticdl.storage import children

if TYPE_CHECKING:
    from elasticdl.experiments.session import Session

__all__ = ["Training", "job_of", "logged_names"]


class Training:
    """Put together when it is made, so that faults are found before anything is written; then run once."""

    def __init__(self, session: Session) -> None:
        config, parts = session.config, session.parts
        self._session = session
        self._epochs = 1 if session.few else config.epochs
        self.status = "failed"
        stream = parts.training
        self.model = parts.trained_on(first_of(stream))
        evaluator = Evaluator(self.model, parts.validation, lambda: one_pass(parts.validation))
        element = first_of(parts.validation)
        self.model.check(split_minibatch(element))
        self.best = Best(config.export.metric, config.export.mode, by_epoch=True)
        self.best.check(logged_names(evaluator.names(element)))
        self._ledger = Ledger(
            [stream.shard],
            records_per_lease=stream.shard.num_records,
            num_epochs=self._epochs,
            seed=config.seed,
        )
        self._evaluator = evaluator
        self._callbacks = Callbacks(
            parts.spec.callbacks(), self.model.model, epochs=self._epochs, verbose=0
        )
        self.trainer: Trainer

    def run(self, journal: Journal) -> None:
        """Train to the end, or to a checkpoint when asked to stop."""
        session, job = self._session, self._job()
        with Run(job, session.directory, session.store, session.interrupt, journal) as run:
            self.trainer = Trainer(
                self.model,
                session.parts.training,
                self._ledger,
                evaluator=self._evaluator,
                callbacks=self._callbacks,
                checkpointer=run,
                plan=Plan(checkpoint_each_epoch=True, log_steps=job.log_loss_steps),
                emit=run.emit,
                best=self.best,
                interrupted=session.interrupt.is_set,
            )
            session.interrupt.listen()
            run.train(
                self.trainer, self.model, self._finish, records=session.parts.training.num_points
            )
            self.status = run.status

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
