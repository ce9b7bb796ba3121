"""Callbacks that write: of several processes that train together, only the one that leads lets them.

Every member has every callback, and calls it in the same way. Keras' own that write files, or send something, would
do so once for each member. Who leads may be lost: the next one takes over where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import keras

__all__ = ["Led", "led", "let_only_leader_save"]

Leads = Callable[[], bool]
Logs = Mapping[str, Any] | None

_WRITERS = ("CSVLogger", "TensorBoard", "RemoteMonitor", "BackupAndRestore", "OrbaxCheckpoint")


def led(callbacks: Sequence[keras.callbacks.Callback], leads: Leads) -> list[Any]:
    """The callbacks, with a stand-in for each that writes."""
    import keras

    writers = tuple(getattr(keras.callbacks, name) for name in _WRITERS)
    return [Led(c, leads) if isinstance(c, writers) else c for c in callbacks]


def let_only_leader_save(callbacks: Sequence[Any], leads: Leads) -> None:
    """Which version is the best has to be known to every member: all decide, one saves."""
    import keras

    for callback in callbacks:
        if isinstance(callback, keras.callbacks.ModelCheckpoint):
            callback._save_model = _Save(callback, leads)


class Led:
    """A callback that is called where its process leads, from its beginning on.

    Args:
      callback: the user's.
      leads: whether this process does, now.
    """

    def __init__(self, callback: keras.callbacks.Callback, leads: Leads) -> None:
        self._callback: Any = callback
        self._leads = leads
        self._model: Any = None
        self._params: Any = None
        self._begun = False
        self.goes_on = False
        """Whether somebody has written before."""
        self._epoch: int | None = None
        """The one that has begun."""
        self._open: set[str] = set()

    def set_model(self, model: keras.Model) -> None:
        self._model = model

    def set_params(self, params: Mapping[str, Any]) -> None:
        self._params = params

    def on_train_begin(self, logs: Logs = None) -> None:
        self._acts()

    def on_train_end(self, logs: Logs = None) -> None:
        if self._acts():
            self._callback.on_train_end(logs)

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        if self._acts():
            self._callback.on_epoch_begin(epoch, logs)
        self._epoch = epoch

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        if self._acts():  # a copy: what it put there would be known to this member only
            self._callback.on_epoch_end(epoch, dict(logs or {}))
        self._epoch = None

    def on_train_batch_begin(self, batch: int, logs: Logs = None) -> None:
        self._opens("batch", self._callback.on_train_batch_begin, batch, logs)

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        self._closes("batch", self._callback.on_train_batch_end, batch, logs)

    def on_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Keras looks at it, and calls the other one."""

    on_test_batch_end = on_predict_batch_end = on_batch_end

    def on_test_begin(self, logs: Logs = None) -> None:
        self._opens("test", self._callback.on_test_begin, logs)

    def on_test_end(self, logs: Logs = None) -> None:
        self._closes("test", self._callback.on_test_end, logs)

    def _opens(self, what: str, call: Callable[..., None], *arguments: Any) -> None:
        if self._acts():
            self._open.add(what)
            call(*arguments)

    def _closes(self, what: str, call: Callable[..., None], *arguments: Any) -> None:
        """Of what began before this process led, the callback does not know."""
        if what in self._open:
            self._open.discard(what)
            call(*arguments)

    def _acts(self) -> bool:
        if not self._leads():
            self.goes_on = True
            return False
        if not self._begun:
            self._begun = True
            self._begin()
        return True

    def _begin(self) -> None:
        import keras

        callback = self._callback
        callback.set_params(self._params)
        callback.set_model(self._model)
        if self.goes_on and hasattr(callback, "append"):
            callback.append = True
        # To go back to saved weights is not one member's affair: `--resume` does it for all.
        if not isinstance(callback, keras.callbacks.BackupAndRestore):
            callback.on_train_begin()
        if self._epoch is not None:
            callback.on_epoch_begin(self._epoch)


class _Save:
    """In the place of `ModelCheckpoint._save_model`. Nothing public is between its decision and its files."""

    def __init__(self, callback: Any, leads: Leads) -> None:
        self._callback = callback
        self._save = callback._save_model
        self._leads = leads

    def __call__(self, epoch: int, batch: int | None, logs: Logs) -> None:
        if self._leads():
            self._save(epoch, batch, logs)
        else:
            path = self._callback._get_file_path(epoch, batch, logs)
            self._callback._should_save_model(epoch, batch, logs, path)
