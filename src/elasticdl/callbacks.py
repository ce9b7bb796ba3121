"""Callbacks of ElasticDL's own, for a model file's `callbacks()`. Any Keras callback works beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from elasticdl.errors import InvalidValue, UnknownName, nearest

__all__ = ["EarlyStopping", "LearningRateScheduler", "MaxStepsStopping"]


class LearningRateScheduler(keras.callbacks.Callback):  # type: ignore[misc]
    """Sets the learning rate before every step. (Keras' own does so before every epoch.)

    Args:
      schedule: `schedule(step)` returns the learning rate for the step, counted from 0.

    Example:
      >>> def callbacks():
      ...     return [LearningRateScheduler(lambda step: 0.1 if step < 1000 else 0.01)]
    """

    def __init__(self, schedule: Callable[[int], float]) -> None:
        super().__init__()
        self._schedule = schedule

    def on_train_batch_begin(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        self.model.optimizer.learning_rate = float(self._schedule(batch))


class MaxStepsStopping(keras.callbacks.Callback):  # type: ignore[misc]
    """Stops training after so many steps, over all epochs.

    Example:
      >>> def callbacks():
      ...     return [MaxStepsStopping(max_steps=500)]
    """

    def __init__(self, max_steps: int) -> None:
        super().__init__()
        self.max_steps = max_steps


class EarlyStopping(keras.callbacks.Callback):  # type: ignore[misc]
    """Stops training when an evaluation metric has stopped getting better.

    Looks at every evaluation, those of `--evaluation_steps` too. (Keras' own looks at each epoch's end.)

    Args:
      metric: the metric's name, as in the evaluation: "accuracy", "loss".
      patience: how many evaluations without a gain to wait for.
      mode: "max" or "min", whichever is better.
      min_delta: the least change that counts as a gain.

    Example:
      >>> def callbacks():
      ...     return [EarlyStopping("accuracy", patience=3, mode="max")]
    """

    def __init__(
        self, metric: str = "loss", patience: int = 1, mode: str = "min", min_delta: float = 0.0
    ) -> None:
        super().__init__()
        if mode not in ("min", "max"):
            raise InvalidValue(f"Invalid mode {mode!r}: give 'min' or 'max'.")
        self.metric, self.patience, self.mode, self.min_delta = metric, patience, mode, min_delta
        self._best: float | None = None
        self._since_best = 0

    def on_test_end(self, logs: dict[str, Any] | None = None) -> None:
        value = (logs or {}).get(self.metric)
        if value is None:
            raise UnknownName(
                f"EarlyStopping watches {self.metric!r}, which the evaluation does not give. "
                f"{nearest(self.metric, logs or {})}"
            )
        sign = 1.0 if self.mode == "max" else -1.0
        if self._best is None or sign * (value - self._best) > self.min_delta:
            self._best, self._since_best = value, 0
            return
        self._since_best += 1
        if self._since_best >= self.patience:
            self.model.stop_training = True
