"""An experiment's training by several processes: each makes the same stream, and takes its slice of every minibatch.

A project's minibatches come out of its own generators, which cannot be sought. So every worker makes all of them, with
the same seed; who joins later reads up to where the others are. Validation is done by everybody too: generators that
draw random numbers draw the same ones everywhere, and the numbers of who leads count for all.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elasticdl.artifacts.checkpoint import Checkpoints
from elasticdl.artifacts.experiment_directory import ExperimentDirectory
from elasticdl.artifacts.run_directory import RunDirectory
from elasticdl.engine.evaluator import Evaluation, Evaluator
from elasticdl.engine.group import Group
from elasticdl.engine.lockstep import LockstepWork
from elasticdl.engine.trainer import Trainer
from elasticdl.errors import DataError
from elasticdl.experiments.assembled import Assembled, assemble, never_a_number, plan
from elasticdl.experiments.components import load_components
from elasticdl.experiments.config import RunConfig
from elasticdl.experiments.parts import Parts
from elasticdl.experiments.project import Project
from elasticdl.job.config import JobConfig
from elasticdl.runtime.elastic.launch import on_ray
from elasticdl.runtime.elastic.member_training import Member, MemberParts, Teller
from elasticdl.runtime.elastic.stalls import Stalls
from elasticdl.runtime.elastic.zoo_files import zoo_environment
from elasticdl.runtime.journal import Journal
from elasticdl.storage import remove, write_file

if TYPE_CHECKING:
    from elasticdl.experiments.session import Session

__all__ = ["ExperimentMember", "train_with_workers"]


def train_with_workers(
    session: Session, job: JobConfig, epochs: int, journal: Journal
) -> tuple[dict[str, Any], Stalls]:
    """Train with the session's workers: what came of it, and how often their group changed."""
    config, source = session.config, session.components.source
    job = replace(
        job,
        global_batch_size=config.batch_size,
        keep_checkpoint_max=config.checkpoints_to_keep,
    )
    member = ExperimentMember(session.project, config, epochs=epochs, few=session.few)
    if not job.resume:
        session.store.clear()
    with zoo_environment(source) as environment, _described(session.directory, job):
        return on_ray(
            job,
            {"member": member},
            session.directory,
            journal,
            session.interrupt,
            source,
            environment,
        )


@contextlib.contextmanager
def _described(directory: RunDirectory, job: JobConfig) -> Iterator[None]:
    """While workers train, `elasticdl scale` finds them."""
    write_file(directory.job, json.dumps(job.to_json()).encode())
    try:
        yield
    finally:
        remove(directory.job)


@dataclass(frozen=True)
class ExperimentMember:
    """What a worker has to know to train an experiment with others.

    Attributes:
      config: with the place of the data in it.
      few: go through all of it with two minibatches.
    """

    project: Project
    config: RunConfig
    epochs: int
    few: bool

    def train(self, job: JobConfig, directory: str, group: Any, master: Any) -> dict[str, Any]:
        """Train to the end; returns what came of it, the same for every member."""
        assert job.model_zoo is not None, "workers start in a copy of the sources"
        components = load_components(
            self.project, self.config, self.config.data_dir, source=Path(job.model_zoo)
        )
        teller = Teller(group, master)

        def warn(message: str) -> None:
            teller.emit("warning", message=message)

        with Parts(
            components, few=self.few, warn=warn, is_hurried=lambda: bool(group.wants_stop)
        ) as parts:
            made = assemble(parts, epochs=self.epochs, leads=lambda: bool(group.leads))
            where = ExperimentDirectory(directory)
            _read_up_to_the_last_checkpoint(parts, where, job)
            member = Member(job, where, group, teller, _parts(job, parts, made, group))
            with _in_its_own_words(parts):
                return member.run()


def _read_up_to_the_last_checkpoint(parts: Parts, directory: RunDirectory, job: JobConfig) -> None:
    """While the others train: they are there or further, and would wait for all that is left to read."""
    checkpoint, _ = Checkpoints(directory.checkpoints, keep=job.keep_checkpoint_max).latest()
    if checkpoint is not None:
        parts.training.read_up_to(checkpoint.state["ledger"]["epoch"])


def _parts(job: JobConfig, parts: Parts, made: Assembled, group: Group) -> MemberParts:
    def finish(trainer: Trainer, directory: RunDirectory) -> list[str]:
        # Who led before may have been lost while it wrote: what is exported is read from here.
        trainer.save_checkpoint()
        return never_a_number(made.best)

    return MemberParts(
        training=made.model,
        pipeline=parts.training,
        ledger=made.ledger,
        element=made.element,
        callbacks=made.callbacks,
        best=made.best,
        plan=plan(job.log_loss_steps),
        shared=True,
        evaluator=lambda work: _AgreedEvaluator(made.evaluator, group, work),
        records=parts.training.num_points,
        finish=finish,
    )


@contextlib.contextmanager
def _in_its_own_words(parts: Parts) -> Iterator[None]:
    """What the user's generator raised is what they see."""
    try:
        yield
    except DataError:
        parts.training.reraise()
        raise


class _AgreedEvaluator:
    """Everybody evaluates, and what who leads has found is what all go by."""

    def __init__(self, evaluator: Evaluator, group: Group, work: LockstepWork) -> None:
        self._evaluator = evaluator
        self._group = group
        self._work = work

    def evaluate(
        self, on_progress: Callable[[int, int], None], interrupted: Callable[[], bool]
    ) -> Evaluation | None:
        found = self._evaluator.evaluate(on_progress, lambda: self._group.wants_stop)
        # As text: what is plain is known to all or to none when the master is lost.
        text = None if found is None else json.dumps([found.metrics, found.examples])
        said = self._work.together(text)
        if None in said:
            self._work.is_stopped = True
            return None
        metrics, examples = json.loads(said[0])
        return Evaluation(metrics, examples)
