"""THE loop: lease, run, record, save, evaluate, until the ledger is empty.

Every way in and every runtime trains through `Trainer.train`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from elasticdl.engine.best import Best
from elasticdl.engine.callbacks import Callbacks
from elasticdl.engine.evaluator import Evaluation
from elasticdl.engine.pace import Pace
from elasticdl.engine.randomness import restore_random_state, save_random_state
from elasticdl.engine.state import TrainingModel
from elasticdl.engine.step import Outcome
from elasticdl.engine.work import Work
from elasticdl.errors import DataError, NonFiniteLoss

__all__ = ["Checkpointer", "Emit", "Plan", "Progress", "Trainer"]


class Emit(Protocol):
    """Tells of an event."""

    def __call__(self, event: str, **fields: Any) -> None: ...


class Evaluates(Protocol):
    """Evaluates the model, alone or with others."""

    def evaluate(
        self, on_progress: Callable[[int, int], None], interrupted: Callable[[], bool]
    ) -> Evaluation | None: ...


class Checkpointer(Protocol):
    """Saves the state of a training at a step."""

    @property
    def is_mine(self) -> bool:
        """Whether it is this process that saves; of several that train together, one does."""

    @property
    def rests(self) -> bool:
        """Whether another one would come too soon after the last."""

    def save(self, step: int, tensors: dict[str, Any], state: dict[str, Any]) -> None: ...


@dataclass(frozen=True)
class Plan:
    """When to do what beside training."""

    evaluation_steps: int = 0
    evaluation_start_delay_s: float = 0
    evaluation_throttle_s: float = 0
    checkpoint_steps: int = 0
    checkpoint_each_epoch: bool = False
    """But not too soon after the last one: epochs may be as short as it takes to write one."""
    max_steps: int = 0
    log_steps: int = 100


@dataclass
class Progress:
    """Where training is, as it is saved in a checkpoint beside the tensors."""

    step: int = 0
    epoch_examples: int = 0
    epoch_loss_sum: float = 0.0
    history: dict[str, list[float]] = field(default_factory=dict)
    epoch_begun: bool = False
    ending: int | None = None
    """The epoch whose steps are all taken and whose evaluation is not done: it was interrupted."""
    evaluated_at: int = -1
    metrics: dict[str, float] = field(default_factory=dict)
    training_metrics: dict[str, float] = field(default_factory=dict)
    """Those of the epoch's training examples, where the model was compiled with metrics."""


class Trainer:
    """Trains a model on the leases of a ledger, which `work` runs.

    `stop_reason` says why `train` returned: completed, max_steps, callback or interrupted.
    """

    def __init__(
        self,
        training: TrainingModel,
        work: Work,
        *,
        evaluator: Evaluates | None,
        callbacks: Callbacks,
        checkpointer: Checkpointer,
        plan: Plan,
        emit: Emit,
        best: Best | None = None,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        self.progress = Progress()
        self.stop_reason = ""
        self.saved_at = 0
        self._restored: tuple[dict[str, Any], dict[str, Any]] | None = None
        self._training = training
        self._work = work
        self._ledger = work.ledger
        self._evaluator = evaluator
        self._callbacks = callbacks
        self._checkpointer = checkpointer
        self._plan = plan
        self.best = best
        self._emit = emit
        self._interrupted = interrupted
        limits = [n for n in (plan.max_steps, callbacks.max_steps) if n]
        self._max_steps = min(limits) if limits else None
        self._pace = Pace(plan.log_steps)

    def train(self) -> None:
        """Run until all epochs are done or something asks to stop."""
        self._callbacks.train_begin()
        if self._restored is not None:  # what callbacks changed as the training begins is not new
            self._take_over(*self._restored)
        while not self._is_done and not self._should_stop():
            if self.progress.ending is None:
                self._run_epoch()
            else:
                self._finish_epoch(self.progress.ending)
        if self.stop_reason != "interrupted":
            self._end_partial_epoch()
        self._callbacks.train_end(self._logs())
        self.stop_reason = self.stop_reason or "completed"

    def _end_partial_epoch(self) -> None:
        """What stopped in the middle of an epoch is told and evaluated like a whole one."""
        self._log_step(self._ledger.epoch)
        self._note_training_metrics()
        if self._needs_evaluation:
            self._evaluate("end")
        if self.progress.epoch_examples:
            self._note_history(self._logs())

    def _run_epoch(self) -> None:
        epoch = self._ledger.epoch
        if not self.progress.epoch_begun:
            self._callbacks.epoch_begin(epoch)
            self.progress.epoch_begun = True
            if self._training.metrics is not None:
                self._training.metrics.reset()
        while not self._ledger.epoch_is_done:
            self._run_steps(epoch)
            if self._should_stop() and not self._may_end_epoch():
                return
        self._work.settle()
        tasks = self._ledger.tasks
        audit = self._ledger.close_epoch()
        self._work.prepare()  # it opens while this epoch is evaluated
        if not self.progress.epoch_examples:
            raise DataError(
                f"The dataset function left none of the {audit.records} training records. "
                "Look at what it filters out when the mode is training."
            )
        self._emit(
            "epoch_audit",
            epoch=epoch,
            records=audit.records,
            examples=self.progress.epoch_examples,
            applied_once=audit.applied_once,
            **({"skipped": audit.skipped} if audit.skipped else {}),
        )
        self._log_step(epoch, tasks)
        self._note_training_metrics()
        self._finish_epoch(epoch)

    @property
    def _is_done(self) -> bool:
        return self._ledger.is_done and self.progress.ending is None

    def _finish_epoch(self, epoch: int) -> None:
        """Evaluate, and end the epoch; what interrupts the evaluation leaves both for who goes on."""
        self.progress.ending = epoch
        if self._needs_evaluation:
            self._evaluate("epoch")
            if self._needs_evaluation:
                return
        self.progress.ending = None
        self._end_epoch(epoch)
        if self._plan.checkpoint_each_epoch and not self._checkpointer.rests:
            self.save_checkpoint()

    def _may_end_epoch(self) -> bool:
        """What stops with the epoch's last step still gets its audit and its evaluation."""
        return self._ledger.epoch_is_done and self.stop_reason != "interrupted"

    def _run_steps(self, epoch: int) -> None:
        """Some steps, as many as nothing else comes between."""
        self._callbacks.steps_begin(self.progress.step)
        steps = self._steps_in_one_call()
        is_due = _is_due(self.progress.step + steps, self._plan.checkpoint_steps)
        if is_due and self._checkpointer.is_mine:
            self._training.prepare_save()
        outcome = self._work.run(steps)
        self._record(epoch, outcome)
        if outcome.steps:  # else what is due at this step was seen to
            self._pause(epoch)

    def _steps_in_one_call(self) -> int:
        """Up to the next thing that must happen between two steps."""
        step, limits = self.progress.step, [self._pace.steps_ahead()]
        if self._callbacks.need_each_step:
            return 1
        for every in (self._plan.evaluation_steps, self._plan.checkpoint_steps):
            if every:
                limits.append(every - step % every)
        if self._max_steps:
            limits.append(self._max_steps - step)
        return max(1, min(limits))

    def _record(self, epoch: int, outcome: Outcome) -> None:
        progress = self.progress
        progress.step += outcome.steps
        progress.epoch_examples += outcome.examples
        progress.epoch_loss_sum += outcome.loss_sum
        if not outcome.is_finite:
            raise NonFiniteLoss(
                f"The loss became {outcome.last_loss} at step {progress.step}, in {self._work.place}, epoch "
                f"{epoch + 1}. "
                "Lower the learning rate, or look for values in the data that are not finite."
            )
        if not outcome.steps:
            return
        self._pace.record(outcome)
        self._callbacks.steps_end(progress.step - 1, outcome.last_loss)
        self._emit(
            "progress",
            step=progress.step,
            epoch=epoch,
            loss=self._pace.loss,
            examples=progress.epoch_examples,
            examples_per_s=self._pace.examples_per_s,
        )
        if self._pace.is_due:
            self._log_step(epoch)

    def _log_step(self, epoch: int, tasks: dict[str, int] | None = None) -> None:
        """Tell of the steps since the last time; `tasks` are those of an epoch that is closed."""
        if not self._pace.has_steps:
            return
        fields = {**self._pace.close(), "tasks": tasks or self._ledger.tasks}
        if shares := self._work.take_shares():
            fields["by_worker"] = shares
        self._emit("step", step=self.progress.step, epoch=epoch, **fields)

    def _pause(self, epoch: int) -> None:
        """Between two graph calls: evaluate and save when it is time to."""
        step, plan = self.progress.step, self._plan
        if (
            _is_due(step, plan.evaluation_steps)
            and self._needs_evaluation
            and self._is_time_to_evaluate()
        ):
            self._log_step(epoch)
            self._evaluate("steps")
        if _is_due(step, plan.checkpoint_steps) and self.saved_at < step:
            self.save_checkpoint()

    def _is_time_to_evaluate(self) -> bool:
        delay_s, throttle_s = (
            self._plan.evaluation_start_delay_s,
            self._plan.evaluation_throttle_s,
        )
        is_time = self._pace.may_evaluate(delay_s, throttle_s)
        return self._work.agree(is_time) if delay_s or throttle_s else is_time

    def save_checkpoint(self) -> None:
        """Save everything that is needed to go on from here, where it is this process that does."""
        if self._checkpointer.is_mine:
            self._checkpointer.save(self.progress.step, *self.snapshot())
        self.saved_at = self.progress.step

    def snapshot(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Everything that is needed to go on from here: tensors, and plain values."""
        tensors = self._training.save() | save_random_state()
        remembered, callbacks = self._callbacks.snapshot()
        state: dict[str, Any] = {
            "progress": vars(self.progress),
            "ledger": self._ledger.snapshot(),
            "callbacks": callbacks,
        }
        if self.best is not None:
            parameters, state["best"] = self.best.snapshot()
            tensors |= parameters
        return tensors | remembered, state

    def restore(self, tensors: dict[str, Any], state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        self._take_over(tensors, state)
        self._ledger.restore(state["ledger"])
        self.progress = Progress(**state["progress"])
        self.saved_at = self.progress.step
        self._restored = (tensors, state)
        if self.best is not None:
            self.best.restore(tensors, state.get("best"))

    def _take_over(self, tensors: dict[str, Any], state: dict[str, Any]) -> None:
        own = {
            n: v for n, v in tensors.items() if n.startswith(("model/", "optimizer/", "metrics/"))
        }
        self._training.load(own)
        self._callbacks.restore(tensors, state["callbacks"])
        restore_random_state(tensors, of_python=not self._work.is_replayed)

    @property
    def _needs_evaluation(self) -> bool:
        return self._evaluator is not None and self.progress.evaluated_at < self.progress.step

    def _evaluate(self, occasion: str) -> None:
        assert self._evaluator is not None
        self._work.settle()
        self._callbacks.evaluation_begin()
        started = time.monotonic()

        def tell(done: int, total: int) -> None:
            self._emit("evaluation_progress", records=done, total=total)

        evaluation = self._evaluator.evaluate(tell, self._interrupted)
        if evaluation is None:
            return
        self.progress.evaluated_at = self.progress.step
        self.progress.metrics = evaluation.metrics
        self._emit(
            "evaluation",
            step=self.progress.step,
            occasion=occasion,
            examples=evaluation.examples,
            seconds=round(time.monotonic() - started, 3),
            metrics=evaluation.metrics,
        )
        for name, value in evaluation.metrics.items():
            if not math.isfinite(value):
                self._emit("warning", message=f"The validation {name} is {value}.")
        if self.best is not None and not self.best.by_epoch:
            self._offer(evaluation.metrics, self._ledger.epoch)
        self._callbacks.evaluation_end(dict(evaluation.metrics))
        self._pace.evaluated()

    def _offer(self, metrics: dict[str, float], epoch: int) -> None:
        assert self.best is not None
        self.best.offer(
            metrics, self.progress.step, epoch, lambda: self._training.save(only_model=True)
        )

    def _note_training_metrics(self) -> None:
        """Before an evaluation, which uses the same metrics."""
        if self._training.metrics is not None:
            self.progress.training_metrics = self._training.metrics.result()

    def _logs(self) -> dict[str, float]:
        progress = self.progress
        logs: dict[str, float] = {}
        if progress.epoch_examples:
            logs["loss"] = progress.epoch_loss_sum / progress.epoch_examples
            logs |= progress.training_metrics
        return logs | {f"val_{name}": value for name, value in progress.metrics.items()}

    def _end_epoch(self, epoch: int) -> None:
        logs = self._logs()
        best = self.best if self.best is not None and self.best.by_epoch else None
        if best is not None and best.metric in logs:
            self._offer(logs, epoch)  # before a callback puts other weights in the model
        logs |= self._callbacks.epoch_end(epoch, logs)
        if best is not None and best.metric not in self._logs():
            self._offer(logs, epoch)
        self._note_history(logs)
        self._emit("epoch", epoch=epoch, step=self.progress.step, **logs)
        self.progress.epoch_examples, self.progress.epoch_loss_sum = 0, 0.0
        self.progress.epoch_begun = False

    def _note_history(self, logs: dict[str, float]) -> None:
        for name, value in logs.items():
            self.progress.history.setdefault(name, []).append(value)

    def _should_stop(self) -> bool:
        if self._interrupted():
            self.stop_reason = "interrupted"
        elif self._callbacks.ask_to_stop:
            self.stop_reason = "callback"
        elif self._max_steps and self.progress.step >= self._max_steps:
            self.stop_reason = "max_steps"
        return bool(self.stop_reason)


def _is_due(step: int, every: int) -> bool:
    return every > 0 and step > 0 and step % every == 0
