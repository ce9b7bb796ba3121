"""The stream that an evaluation reads: one pass after the other, in each of them each data point once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from elasticdl.data.generators import Batch, batch_spec, next_batch
from elasticdl.data.ledger import Lease
from elasticdl.data.minibatches import prefetch_depth
from elasticdl.data.pipeline import optional
from elasticdl.data.streams import Stream, StreamData
from elasticdl.errors import DataError

if TYPE_CHECKING:
    import tensorflow as tf

__all__ = ["EvaluationStream"]

KEPT_BYTES = 256 << 20
"""Validation data up to this size is read once and kept: it is the same in each pass."""


class EvaluationStream(Stream):
    """The minibatches of one pass over the data after the other, each data point once in each pass.

    Args:
      make: makes the user's minibatches; called for each pass, unless they are a dataset made without Python.
      changes: the data may be another in each pass, as random augmentation makes it.
      warn: is told what the user should know.
    """

    def __init__(
        self,
        make: Callable[[], StreamData],
        *,
        changes: bool = False,
        warn: Callable[[str], None] = lambda message: None,
    ) -> None:
        self._data = data = make()
        super().__init__(data)
        self._make = make
        self._warn = warn
        self._started: tuple[StreamData, Iterator[Batch]] | None = None
        self._first: Any = None
        one_pass = self._plain = self._one_pass()
        self.element_spec = spec = one_pass.element_spec
        if not changes and _num_bytes(spec, data.num_points) <= KEPT_BYTES:
            one_pass = one_pass.cache()
        passes = _ending(one_pass.prefetch(prefetch_depth(spec)), spec).repeat()
        self._dataset = passes.with_options(_options())

    @property
    def first(self) -> Any:
        """The first minibatch of a pass."""
        import tensorflow as tf

        if self._first is None:
            self._first = next(iter(self._plain.take(1)), None)
            if self._first is None:
                raise DataError(f"The {self._data.name} data gave no minibatch.")
        return tf.nest.map_structure(tf.convert_to_tensor, self._first)

    def open(self, lease: Lease) -> Any:
        if self._iterator is None:
            self._start(self._dataset)
        return self._iterator

    def fresh(self) -> Iterator[Any]:
        """The minibatches of a pass of its own, whatever else is being read."""
        try:
            yield from self._plain
        except Exception:
            self.reraise()
            raise

    def _one_pass(self) -> tf.data.Dataset:
        import tensorflow as tf

        data = self._data
        if data.points is None and isinstance(data.batches, tf.data.Dataset):
            batches = data.batches if data.limit is None else data.batches.take(data.limit)
            return _cut(batches, data.num_points)
        batches = _in_python(data)
        first = next_batch(batches)
        if first is None:
            raise DataError(f"The {data.name} data gave no minibatch.")
        self._first = first
        self._started = data, _chain(first, batches)
        return self._from_generator(self._generate, batch_spec(first))

    def _generate(self) -> Iterator[Batch]:
        """The minibatches of a pass, cut where its data points end."""
        started, self._started = self._started, None
        if started is None:
            data = self._make()
            started = data, _in_python(data)
        data, batches = started
        left, limit = data.num_points, data.limit
        while limit != 0 and left and (batch := next_batch(batches)) is not None:
            if data.points is not None and data.points.ended:
                self._note_end(data)
                left = min(left, data.points.given - (data.num_points - left))
            batch = _rows(batch, left)
            left -= len(_first_array(batch))
            limit = None if limit is None else limit - 1
            if len(_first_array(batch)):
                yield batch

    def _note_end(self, data: StreamData) -> None:
        assert data.points is not None
        if data.points.given < data.num_points:
            self._warn(
                f"The {data.name} generator gave {data.points.given} data points instead of the "
                f"{data.num_points} that it is said to have."
            )


def _options() -> Any:
    """As it is written: TensorFlow would begin the next pass by itself, while the training needs the processor."""
    import tensorflow as tf

    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    return options


def _num_bytes(spec: Any, num_points: int) -> float:
    """What so many data points take; without end where a shape is not known."""
    import tensorflow as tf

    total = 0.0
    for one in tf.nest.flatten(spec):
        shape = getattr(one, "shape", None)
        if shape is None or shape.rank is None or None in shape[1:].as_list():
            return float("inf")
        total += num_points * (shape[1:].num_elements() or 1) * max(8, one.dtype.size)
    return total


def _in_python(data: StreamData) -> Iterator[Any]:
    import tensorflow as tf

    if isinstance(data.batches, tf.data.Dataset):
        return iter(data.batches.as_numpy_iterator())
    return iter(data.batches)


def _chain(first: Batch, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


def _first_array(batch: Any) -> Any:
    import tensorflow as tf

    return tf.nest.flatten(batch)[0]


def _rows(batch: Batch, count: int) -> Batch:
    import tensorflow as tf

    if len(_first_array(batch)) <= count:
        return batch
    cut: Batch = tf.nest.map_structure(lambda array: array[:count] if array.ndim else array, batch)
    return cut


def _cut(dataset: tf.data.Dataset, num_points: int) -> tf.data.Dataset:
    """The dataset's first so many rows."""
    import tensorflow as tf

    def cut(left: tf.Tensor, *parts: Any) -> Any:
        rows = tf.cast(tf.shape(tf.nest.flatten(parts)[0])[0], tf.int64)
        kept = tf.minimum(rows, left)
        rest = tf.nest.map_structure(lambda t: t[:kept] if t.shape.rank else t, parts)
        return left - kept, rest if len(parts) > 1 else rest[0]

    dataset = dataset.scan(tf.constant(num_points, tf.int64), cut)
    return dataset.take_while(lambda *parts: tf.shape(tf.nest.flatten(parts)[0])[0] > 0)


def _ending(dataset: tf.data.Dataset, spec: Any) -> tf.data.Dataset:
    import tensorflow as tf

    end = tf.data.Dataset.from_tensors(tf.experimental.Optional.empty(spec))
    return dataset.map(optional(spec)).concatenate(end)
