"""Training as a member of a group: the ordinary trainer, on a replica of the group's state."""

from __future__ import annotations

import collections
import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from elasticdl.artifacts.checkpoint import Checkpoints
from elasticdl.artifacts.run_directory import RunDirectory
from elasticdl.data.ledger import Ledger
from elasticdl.data.pipeline import Leases
from elasticdl.engine.best import Best
from elasticdl.engine.callbacks import Callbacks
from elasticdl.engine.lockstep import LockstepWork
from elasticdl.engine.shared_evaluator import SharedEvaluator
from elasticdl.engine.state import TrainingModel
from elasticdl.engine.trainer import Evaluates, Plan, Trainer
from elasticdl.job.config import JobConfig
from elasticdl.runtime import assembly, earlier
from elasticdl.runtime.elastic.master import MILESTONES
from elasticdl.runtime.elastic.member import RayGroup
from elasticdl.runtime.run import Run, job_name
from elasticdl.runtime.training import TrainingParts, training_parts
from elasticdl.storage import place, remove

__all__ = ["Member", "MemberParts", "Teller", "train"]

PROGRESS_S = 1.0
KEPT = 64
"""Milestones that a leader which is lost may have been about to tell, with very short epochs."""


def train(
    config: JobConfig, objects: Mapping[str, Any], directory: str, group: RayGroup, master: Any
) -> dict[str, Any]:
    """Train to the end as one of the group; returns what came of it, the same for every member.

    `directory` is the run's, a path or an address.
    Who stands above this room and trains something else than a job's model gives `objects["member"]`, which has a
    method of this name that takes the rest.
    """
    if "member" in objects:
        outcome: dict[str, Any] = objects["member"].train(config, directory, group, master)
        return outcome
    teller = Teller(group, master)
    with (
        assembly.started(config),
        training_parts(config, objects, leads=lambda: group.leads) as parts,
    ):
        run_directory = RunDirectory(directory)
        return Member(config, run_directory, group, teller, _of_job(config, parts, group)).run()


@dataclass(frozen=True)
class MemberParts:
    """What a member trains.

    Attributes:
      shared: whether all members take their slices of the same minibatches.
      evaluator: evaluates with the others, given the work that they do together.
      records: what an epoch has, for people.
      finish: after the last step, by who leads: saves what was trained; returns what a user should know of it.
    """

    training: TrainingModel
    pipeline: Leases
    ledger: Ledger
    element: Any
    callbacks: Callbacks
    best: Best | None
    plan: Plan
    shared: bool
    evaluator: Callable[[LockstepWork], Evaluates | None]
    records: int
    finish: Callable[[Trainer, RunDirectory], list[str]]


def _of_job(config: JobConfig, parts: TrainingParts, group: RayGroup) -> MemberParts:
    def finish(trainer: Trainer, directory: RunDirectory) -> list[str]:
        for path in (directory.model, directory.last_model):
            remove(path)
        return parts.models.save_end(directory, trainer.progress, parts.best)

    evaluator = parts.evaluator
    return MemberParts(
        training=parts.training,
        pipeline=parts.pipeline,
        ledger=parts.ledger,
        element=parts.element,
        callbacks=parts.callbacks,
        best=parts.best,
        plan=assembly.make_plan(config, each_epoch=True),
        shared=config.global_batch_size is not None,
        evaluator=lambda work: SharedEvaluator(evaluator, group, work) if evaluator else None,
        records=parts.ledger.records_per_epoch,
        finish=finish,
    )


class Teller:
    """Sends events to the master: those of the training from who leads, some from everybody.

    Who follows keeps the milestones. When it comes to lead it tells them, since the one that led before may not have;
    the master knows which it has.
    """

    def __init__(self, group: RayGroup, master: Any) -> None:
        self._group = group
        self._master = master
        self._seq = 0
        self._sent: Any = None
        self._shown = 0.0
        self._kept: collections.deque[dict[str, Any]] = collections.deque(maxlen=KEPT)

    def emit(self, event: str, **fields: Any) -> None:
        if self._group.leads:
            self._tell_kept()
            self.tell(event, **fields)
        elif event in MILESTONES:
            self._kept.append({"time": round(time.time(), 3), "event": event, **fields})

    def tell(self, event: str, **fields: Any) -> None:
        now = time.time()
        if event == "progress":
            if now - self._shown < PROGRESS_S:
                return
            self._shown = now
            fields["workers"] = self._group.size
        self._send({"time": round(now, 3), "event": event, **fields})

    def _tell_kept(self) -> None:
        while self._kept:
            self._send(self._kept.popleft())

    def _send(self, record: dict[str, Any]) -> None:
        self._seq += 1
        self._sent = self._master.tell.remote(self._group.name, [{**record, "seq": self._seq}])

    def flush(self) -> None:
        import ray

        if self._group.leads:
            self._tell_kept()
        if self._sent is not None:
            ray.get(self._sent)


class _LeaderRun(Run):
    """A training's checkpoints and events, written by the member that leads."""

    def __init__(self, *arguments: Any, group: RayGroup) -> None:
        super().__init__(*arguments)
        self._group = group

    @property
    def is_mine(self) -> bool:  # type: ignore[override]
        return self._group.leads

    @property
    def rests(self) -> bool:
        return not self._group.leads or super().rests

    def wait(self) -> None:
        self._writing.wait()


class Member:
    """One member's training, from its first view to the end."""

    def __init__(
        self,
        config: JobConfig,
        directory: RunDirectory,
        group: RayGroup,
        teller: Teller,
        parts: MemberParts,
    ) -> None:
        self._config = config
        self._directory = directory
        self._group = group
        self._teller = teller
        self._parts = parts
        self._store = Checkpoints(
            place(config.checkpoint_dir or directory.checkpoints), keep=config.keep_checkpoint_max
        )
        self._work = LockstepWork(
            parts.training,
            parts.pipeline,
            parts.ledger,
            group,
            shared=parts.shared,
            max_bad_tasks=config.max_bad_tasks,
            tell=teller.tell,
        )
        interrupt: Any = SimpleNamespace(status="interrupted")
        journal: Any = teller
        self._run = _LeaderRun(config, directory, self._store, interrupt, journal, group=group)
        self._trainer = Trainer(
            parts.training,
            self._work,
            evaluator=parts.evaluator(self._work),
            callbacks=parts.callbacks,
            checkpointer=self._run,
            plan=parts.plan,
            emit=self._run.emit,
            best=parts.best,
            interrupted=lambda: self._work.is_stopped,
        )
        self._work.whole_state = self._trainer.snapshot

    def run(self) -> dict[str, Any]:
        self._work.warm_up(self._parts.element)
        change = self._group.join(self._found, self._work.give)
        if change.state is not None:
            assert change.state.rest is not None
            self._trainer.restore(change.state.tensors, change.state.rest)
        self._work.begin(change)
        with contextlib.ExitStack() as stack:
            stack.callback(self._teller.flush)
            self._trainer.train()
            self._by_leader(self._end)
        progress = self._trainer.progress
        return {
            "reason": self._trainer.stop_reason,
            "steps": progress.step,
            "history": progress.history,
            "metrics": progress.metrics,
        }

    def _found(self) -> int:
        """Nobody has any state: begin, or go on from the last checkpoint."""
        config, trainer = self._config, self._trainer
        if config.resume or not self._store.is_empty:
            earlier.restore(trainer, self._store, self._directory, config, self._teller.tell)
        self._teller.tell(
            "run_started",
            command="train",
            job=job_name(config),
            model=self._parts.training.spec.name,
            records=self._parts.records,
            num_epochs=config.num_epochs,
            step=trainer.progress.step,
            seed=config.seed,
        )
        for message in (*self._remarks(), *self._parts.training.warnings):
            self._teller.tell("warning", message=message)
        return trainer.progress.step

    def _remarks(self) -> list[str]:
        remarks = [] if self._group.remark is None else [self._group.remark]
        if self._group.number > 1:
            step = self._trainer.progress.step
            remarks.append(f"All workers were lost: the training goes on from step {step}.")
        return remarks

    def _by_leader(self, do: Callable[[], None]) -> None:
        """Done once by who leads; when that one is lost in the middle of it, by the next."""
        done = False
        while True:
            if self._group.leads and not done:
                do()
                done = True
            if self._work.together(done)[0]:
                return

    def _end(self) -> None:
        trainer = self._trainer
        if trainer.stop_reason == "interrupted" or trainer.saved_at < trainer.progress.step:
            trainer.save_checkpoint()
        self._run.wait()
        if trainer.stop_reason == "interrupted":
            return
        for message in self._parts.finish(trainer, self._directory):
            self._teller.emit("warning", message=message)
        self._run.wait()
