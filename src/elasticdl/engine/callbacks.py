"""Keras callbacks inside our loop: who is told what, and which of them need to see each step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

from elasticdl.engine.leading import Led, led, let_only_leader_save
from elasticdl.engine.remember import plain_attributes, set_plain_attributes

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
    """The user's callbacks, told of training in Keras' own terms.

    Args:
      callbacks: the user's own.
      model: what is trained.
      leads: of several processes that train together, whether this one leads: it alone lets callbacks write. None
        where there is only one.
      params: what Keras tells callbacks of a training.
    """

    def __init__(
        self,
        callbacks: Sequence[keras.callbacks.Callback],
        model: keras.Model,
        *,
        leads: Callable[[], bool] | None = None,
        **params: Any,
    ) -> None:
        import keras

        self._model = model
        self._model.stop_training = False
        self._callbacks = list(callbacks)
        called = self._callbacks if leads is None else led(self._callbacks, leads)
        self._list = keras.callbacks.CallbackList(called, model=model, **params)
        if leads is not None:
            let_only_leader_save(self._callbacks, leads)
        self.need_each_step = any(_sees_steps(callback) for callback in callbacks)
        limits = [c.max_steps for c in callbacks if hasattr(c, "max_steps")]
        self.max_steps: int | None = min(limits) if limits else None

    @property
    def ask_to_stop(self) -> bool:
        return bool(self._model.stop_training)

    def snapshot(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """What the callbacks remember: tensors, and for each callback its plain values.

        A callback that waits for a metric to get better counts in attributes of its own.
        """
        tensors: dict[str, Any] = {}
        states = []
        for number, callback in enumerate(self._callbacks):
            state, arrays = plain_attributes(callback)
            states.append({"class": type(callback).__name__, "values": state})
            tensors |= {f"callbacks/{number}/{name}": array for name, array in arrays.items()}
        return tensors, states

    def restore(self, tensors: Mapping[str, Any], states: Sequence[Mapping[str, Any]]) -> None:
        """Let the callbacks remember, as far as they are the same ones in the same order."""
        for callback in self._list.callbacks:
            if isinstance(callback, Led):
                callback.goes_on = True
        for number, (callback, state) in enumerate(zip(self._callbacks, states, strict=False)):
            if state["class"] != type(callback).__name__:
                return
            prefix = f"callbacks/{number}/"
            arrays = {n.removeprefix(prefix): a for n, a in tensors.items() if n.startswith(prefix)}
            set_plain_attributes(callback, state["values"], arrays)

    def train_begin(self) -> None:
        self._list.on_train_begin()

    def train_end(self, logs: dict[str, float]) -> None:
        self._list.on_train_end(logs)

    def epoch_begin(self, epoch: int) -> None:
        self._list.on_epoch_begin(epoch)

    def epoch_end(self, epoch: int, logs: Mapping[str, float]) -> dict[str, float]:
        """Returns the numbers that the callbacks have put beside the logs, such as a learning rate."""
        told: dict[str, Any] = dict(logs)
        for callback in self._list.callbacks:  # Keras' list would hand them a copy
            callback.on_epoch_end(epoch, told)
        return {n: float(v) for n, v in told.items() if n not in logs and isinstance(v, Real)}

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
