"""What an experiment's training is made of, put together in the same order by every process that takes part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from elasticdl.data.ledger import Ledger
from elasticdl.engine.best import Best
from elasticdl.engine.callbacks import Callbacks
from elasticdl.engine.evaluator import Evaluator
from elasticdl.engine.state import TrainingModel
from elasticdl.engine.trainer import Plan
from elasticdl.errors import UnknownName
from elasticdl.experiments.parts import Parts, check_fits, first_of, one_pass

__all__ = ["Assembled", "assemble", "logged_names", "never_a_number", "plan"]


@dataclass(frozen=True)
class Assembled:
    """The parts of a training beside its stream of minibatches."""

    model: TrainingModel
    element: Any
    """The first minibatch."""
    evaluator: Evaluator
    best: Best
    ledger: Ledger
    callbacks: Callbacks


def assemble(parts: Parts, *, epochs: int, leads: Callable[[], bool] | None = None) -> Assembled:
    """Make all of it; faults of the data, the model and the config are found here.

    Args:
      epochs: how many are trained.
      leads: see `Callbacks`.
    """
    config = parts.components.config
    made = list(parts.spec.callbacks())
    stream = parts.training
    element = first_of(stream)
    model = parts.trained_on(element, "training")
    evaluator = Evaluator(model, parts.validation, lambda: one_pass(parts.validation))
    validated = first_of(parts.validation)
    check_fits(model, parts.validation)
    best = Best(config.export.metric, config.export.mode, by_epoch=True)
    _check_metric(best, logged_names(evaluator.names(validated)), made)
    ledger = Ledger(
        [stream.shard],
        records_per_lease=stream.shard.num_records,
        num_epochs=epochs,
        seed=config.seed,
    )
    callbacks = Callbacks(made, model.model, leads=leads, epochs=epochs, verbose=0)
    return Assembled(model, element, evaluator, best, ledger, callbacks)


def plan(log_steps: int) -> Plan:
    return Plan(checkpoint_each_epoch=True, log_steps=log_steps)


def logged_names(evaluated: list[str]) -> list[str]:
    """What an epoch logs: the same metrics of the training and of the validation."""
    return [*evaluated, *(f"val_{name}" for name in evaluated)]


def never_a_number(best: Best) -> list[str]:
    """What to tell of an export metric that chose nothing."""
    if best.value is not None:
        return []
    return [f"{best.metric} was never a number, so the last epoch is the one to be exported."]


def _check_metric(best: Best, names: list[str], callbacks: list[Any]) -> None:
    """A callback of the user's own may log what nobody else knows: then the first epoch tells."""
    own = [c for c in callbacks if not type(c).__module__.startswith("keras.")]
    try:
        best.check(names)
    except UnknownName:
        if not own:
            raise
