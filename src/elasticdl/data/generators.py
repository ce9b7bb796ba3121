"""Python generators of the user's: their data points counted, their ends understood, their batches as arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from elasticdl.errors import DataError

__all__ = ["Batch", "PointSource", "batch_spec", "check_batch", "next_batch"]

Batch = tuple[Any, ...]
"""(features, labels) or (features, labels, third), each an array or a nest of arrays."""

_END = object()


def next_or(iterator: Iterator[Any], end: Any) -> Any:
    """The next of an iterator, or `end`.

    A generator that calls `next` on one which has ended raises a RuntimeError: it has ended too.
    """
    try:
        return next(iterator, end)
    except RuntimeError as error:
        if isinstance(error.__cause__, StopIteration):
            return end
        raise


class PointSource:
    """The data points of a user's generator, without end, so that what makes batches of them can fill its last.

    After its end it begins again, with `again`, or repeats the last point for ever.

    Args:
      points: the generator.
      limit: the number of points after which it counts as ended; None for its own end.
      again: makes a new generator.
      on_end: is told at its first end how many points it has given.
    """

    def __init__(
        self,
        points: Iterator[Any],
        limit: int | None = None,
        again: Callable[[], Iterator[Any]] | None = None,
        on_end: Callable[[int], None] = lambda given: None,
    ) -> None:
        self._on_end = on_end
        self._points = points
        self._limit = limit
        self._again = again
        self._last: Any = _END
        self.given = 0
        """The points of the generator that were handed out before its first end."""
        self.ended = False

    def __iter__(self) -> PointSource:
        return self

    def __next__(self) -> Any:
        if not self.ended and self.given != self._limit:
            self._last, before = next_or(self._points, _END), self._last
            if self._last is not _END:
                self.given += 1
                return self._last
            self._last = before
        if not self.ended:
            self.ended = True
            self._on_end(self.given)
        if self._again is None:
            if self._last is _END:
                raise StopIteration
            return self._last
        return self._next_round()

    def _next_round(self) -> Any:
        assert self._again is not None
        point = next_or(self._points, _END)
        if point is _END:
            self._points = iter(self._again())
            point = next_or(self._points, _END)
        if point is _END:
            raise StopIteration
        return point


def next_batch(batches: Iterator[Any]) -> Batch | None:
    """The next minibatch as arrays; None at the end."""
    import numpy as np
    import tensorflow as tf

    batch = next_or(batches, None)
    if batch is None:
        return None
    if not isinstance(batch, list | tuple) or len(batch) not in (2, 3):
        what = (
            f"{type(batch).__name__} of {len(batch)}" if hasattr(batch, "__len__") else repr(batch)
        )
        raise DataError(
            "A minibatch must be (features, labels) or (features, labels, sample weights); the generator "
            f"gave a {what}. Look at what `batchify` yields."
        )
    features, labels, *third = (
        tf.nest.map_structure(np.asarray, part) for part in map(_unlisted, batch)
    )
    third = [tf.nest.map_structure(_named, part) for part in third]
    return tf.nest.map_structure(_single, features), labels, *third


def _unlisted(part: Any) -> Any:
    """A list of numbers is an array; a list of arrays, a structure of several inputs, is not."""
    import numpy as np

    is_flat = isinstance(part, list) and not any(isinstance(one, np.ndarray) for one in part)
    return np.asarray(part) if is_flat else part


def _named(array: Any) -> Any:
    """What data points are called may be anything: what is not text or a number becomes text."""
    import numpy as np

    if array.dtype != object or all(isinstance(one, str | bytes) for one in array.flat):
        return array
    return np.array([one if isinstance(one, bytes) else str(one) for one in array.flat], object)


def _as_text(ids: Any) -> Any:
    import numpy as np

    is_number = isinstance(ids, np.ndarray) and ids.dtype.kind not in "OSU"
    return np.array([str(one) for one in ids.flat], object) if is_number else ids


def _single(array: Any) -> Any:
    """Models compute in single precision: half the bytes to hand over."""
    import keras
    import numpy as np

    return array.astype(keras.config.floatx()) if array.dtype == np.float64 else array


def batch_spec(batch: Batch) -> Any:
    """The types and shapes of minibatches like this one, of any number of rows."""
    import tensorflow as tf

    def spec(array: Any) -> Any:
        kind = tf.string if array.dtype.kind in "OSU" else tf.as_dtype(array.dtype)
        return tf.TensorSpec([None, *array.shape[1:]] if array.ndim else [], kind)

    return tf.nest.map_structure(spec, batch)


def check_batch(batch: Batch, spec: Any, name: str) -> Batch:
    """Refuse a minibatch that is unlike the first; TensorFlow's word on it is long."""
    import tensorflow as tf

    if len(batch) == len(spec) == 3 and getattr(spec[2], "dtype", None) == tf.string:
        batch = (
            *batch[:2],
            _as_text(batch[2]),
        )  # numbers and text among what data points are called
    try:
        tf.nest.assert_same_structure(batch, spec)
        fits = all(
            one.is_compatible_with(tf.TensorSpec(array.shape, one.dtype))
            for one, array in zip(tf.nest.flatten(spec), tf.nest.flatten(batch), strict=True)
        )
    except (ValueError, TypeError):
        fits = False
    if not fits:
        shapes = [tuple(array.shape) for array in tf.nest.flatten(batch)]
        first = [tuple(one.shape) for one in tf.nest.flatten(spec)]
        raise DataError(
            f"A minibatch of {name} has the shapes {shapes}; the first one had {first}. "
            "Make all data points alike in the preprocessor."
        )
    return batch
