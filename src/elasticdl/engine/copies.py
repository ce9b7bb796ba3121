"""Copies of variables for a checkpoint, into memory that is made ready while the training runs.

The training waits for the copy, and for nothing else. Most of what a copy costs is memory that the process does not
have yet: the system finds and clears every page of it when it is first touched. That is done before, by a thread,
while the steps that lead to the checkpoint run; what is left is to move bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import keras
    import numpy as np

__all__ = ["Copies"]

COPIERS = 4
"""Threads that move bytes: they are bound by memory, so a few are enough."""
PAGE = 4096

Arrays = dict[str, "np.ndarray[Any, Any]"]


class Copies:
    """Copies variables by name. `prepare` may be called some time before `take`."""

    def __init__(self, variables: Mapping[str, keras.Variable]) -> None:
        self._variables = dict(variables)
        self._ready: Future[Arrays] | None = None

    def prepare(self) -> None:
        """Begin to make memory ready, in a thread."""
        if self._ready is None:
            with ThreadPoolExecutor(1, "copies") as pool:
                self._ready = pool.submit(self._allocate)
                pool.shutdown(wait=False)

    def take(self) -> Arrays:
        """A copy of every variable."""
        self.prepare()
        assert self._ready is not None
        ready, self._ready = self._ready.result(), None
        with ThreadPoolExecutor(COPIERS) as pool:
            copied = pool.map(_copy, self._variables.values(), ready.values())
            return dict(zip(self._variables, copied, strict=True))

    def _allocate(self) -> Arrays:
        import numpy as np

        arrays = {
            name: np.empty(tuple(variable.shape), _dtype(variable))
            for name, variable in self._variables.items()
        }
        for array in arrays.values():
            array.reshape(-1).view(np.uint8)[::PAGE] = 0
        return arrays


def _dtype(variable: keras.Variable) -> Any:
    import tensorflow as tf

    return tf.as_dtype(variable.dtype).as_numpy_dtype


def _copy(variable: keras.Variable, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    import numpy as np
    import tensorflow as tf

    own = variable if isinstance(variable, tf.Variable) else variable.value
    tensor = own.read_value()  # shares memory with the variable until it is assigned to
    try:
        source: Any = np.asarray(memoryview(tensor))
    except (
        TypeError,
        ValueError,
        BufferError,
    ):  # a type that Python's buffers do not know: bfloat16
        source = tensor.numpy()
    np.copyto(array, source)
    return array
