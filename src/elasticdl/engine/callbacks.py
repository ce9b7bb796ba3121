"""Keras callbacks inside our loop: who is told what, and which of them need to see each step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import keras

__all__ = ["Callbacks"]

_BATCH_HOOKS = (
    "on_train_batch_begin",
    "on_train_batch_end",
    "on_batch_begin",
    "on_batch_end",
)


class Callbacks:
    """The user's callbacks, told of training in Keras' own terms."""

    def __init__(
        self, callbacks: Sequence[keras.callbacks.Callback], model: keras.Model, **params: Any
    ) -> None:
        import keras

        self._model = model
        self._model.stop_training = False
        self._list = keras.callbacks.CallbackList(list(callbacks), model=model, **params)
        self.need_each_step = any(_sees_steps(callback) for callback in callbacks)
        limits = [c.max_steps for c in callbacks if hasattr(c, "max_steps")]
        self.max_steps: int | None = min(limits) if limits else None

    @property
    def ask_to_stop(self) -> bool:
        return bool(self._model.stop_training)

    def train_begin(self) -> None:
        self._list.on_train_begin()

    def train_end(self, logs: dict[str, float]) -> None:
        self._list.on_train_end(logs)

    def epoch_begin(self, epoch: int) -> None:
        self._list.on_epoch_begin(epoch)

    def epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        self._list.on_epoch_end(epoch, logs)

    def steps_begin(self, step: int) -> None:
        if self.need_each_step:
            self._list.on_train_batch_begin(step)

    def steps_end(self, step: int, loss: float) -> None:
        if self.need_each_step:
            self._list.on_train_batch_end(step, {"loss": loss})

    def evaluation_begin(self) -> None:
        self._list.on_test_begin()

    def evaluation_end(self, metrics: dict[str, float]) -> None:
        self._list.on_test_end(metrics)


def _sees_steps(callback: keras.callbacks.Callback) -> bool:
    """Whether the callback has a hook of its own for single steps."""
    import keras

    base = keras.callbacks.Callback
    return any(
        getattr(getattr(callback, hook), "__func__", None) is not getattr(base, hook)
        for hook in _BATCH_HOOKS
    )
