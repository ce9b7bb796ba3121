"""The user's own stream of minibatches as leases: an epoch, or a pass over the data, is one lease.

Elsewhere in this room records are ours to cut and to shuffle. Here the user has made the minibatches, as a
`tf.data.Dataset` or in a Python generator, and says how many of them an epoch has. A stream for training is made
once and never begun anew, as `fit` does it, so its order depends on the seed alone; a run that goes on reads up to
where it was. A stream for evaluation begins anew at each pass and gives each data point exactly once, however its
generator repeats, pads or ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from elasticdl.data.generators import Batch, PointSource, batch_spec, check_batch, next_batch
from elasticdl.data.ledger import Lease
from elasticdl.data.minibatches import prefetch_depth
from elasticdl.data.pipeline import optional
from elasticdl.data.source import Shard
from elasticdl.errors import DataError

if TYPE_CHECKING:
    import tensorflow as tf

__all__ = ["EvaluationStream", "StreamData", "TrainingStream"]

KEPT_BYTES = 256 << 20
"""Validation data up to this size is read once and kept: it is the same in each pass."""
REPLAY_S = 60.0
"""How long a run that goes on reads data again to be exactly where it was."""
_CHUNK = 64


@dataclass(frozen=True)
class StreamData:
    """What the user's classes made: minibatches, and how many of them make an epoch."""

    name: str
    """What it is, in words: "training"."""
    batches: Any
    """A `tf.data.Dataset` or an iterator."""
    num_batches: int
    num_points: int
    points: PointSource | None = None
    """The data points below the minibatches, where they come from a Python generator."""


class _Stream:
    """What both kinds have: one iterator of optional minibatches, of which an empty one ends a lease."""

    is_replayed = True

    def __init__(self, data: StreamData) -> None:
        self.shard = Shard(f"the {data.name} batches", data.num_batches, sequential=True)
        self.num_points = data.num_points
        """The data points of an epoch or a pass, by the word of who made them."""
        self.element_spec: Any = None
        self._iterator: Any = None
        self._failure: BaseException | None = None
        self._is_closed = False

    def prepare(self, lease: Lease | None) -> None:
        """The iterator runs ahead by itself."""

    def finish(self, lease: Lease) -> None:
        """The lease's end was reached: the iterator stands before the next one."""

    def open(self, lease: Lease) -> Any:
        raise NotImplementedError

    def begin(self, lease: Lease) -> tuple[Any, Any]:
        """The iterator, and the first minibatch of the lease."""
        iterator = self.open(lease)
        return iterator, iterator.get_next()

    def elements(self, lease: Lease) -> Iterator[Any]:
        """The lease's minibatches, in Python."""
        iterator, minibatch = self.begin(lease)
        while minibatch.has_value():
            yield minibatch.get_value()
            minibatch = iterator.get_next()
        self.finish(lease)

    def find_fault(self, lease: Lease) -> int | None:
        """Nobody can say which of the user's own data points it is."""
        return None

    def reraise(self) -> None:
        """Raise what the user's generator raised, when it was that which failed."""
        if self._failure is not None:
            raise self._failure from None

    def close(self) -> None:
        """Let go of the iterator, which waits for its thread. A thread in Python must end before Python does."""
        self._is_closed = True
        self._iterator = None

    def _start(self, dataset: tf.data.Dataset) -> None:
        import tensorflow as tf

        with tf.device("CPU:0"):
            self._iterator = iter(dataset)

    def _from_generator(self, generate: Callable[[], Iterator[Batch]], spec: Any) -> Any:
        """A dataset of what a Python generator yields; remembers what it raised."""
        import tensorflow as tf

        def guarded() -> Iterator[Batch]:
            try:
                for batch in generate():
                    if self._is_closed:
                        return
                    yield check_batch(batch, spec, self.shard.name)
            except GeneratorExit:
                raise
            except BaseException as error:
                self._failure = error
                raise

        return tf.data.Dataset.from_generator(guarded, output_signature=spec)


class TrainingStream(_Stream):
    """The minibatches to train on, without end; `num_batches` of them are an epoch.

    Args:
      make: makes the user's minibatches; called again where they end.
      convert: changes each minibatch inside of the graph; for class weights.
      warn: is told what the user should know.
    """

    def __init__(
        self,
        make: Callable[[], StreamData],
        *,
        convert: Callable[[Any], Any] | None = None,
        warn: Callable[[str], None] = lambda message: None,
    ) -> None:
        self._data = data = make()
        super().__init__(data)
        self._make = make
        self._warn = warn
        self._given = 0
        """Optionals that were handed out: an epoch's minibatches and the empty one at its end."""
        dataset = self._endless()
        if convert is not None:
            dataset = dataset.map(lambda *parts: convert(parts))
        self.element_spec = dataset.element_spec
        self._start(self._with_ends(dataset))
        self._hand = self._iterator.get_next()

    @property
    def first(self) -> Any:
        """The first minibatch, which is trained on all the same."""
        return self._hand.get_value()

    def close(self) -> None:
        self._hand = None
        super().close()

    def begin(self, lease: Lease) -> tuple[Any, Any]:
        return self.open(lease), self._take()

    def open(self, lease: Lease) -> Any:
        wanted = lease.epoch * (self._data.num_batches + 1) + lease.skip
        if wanted > self._given:
            self._replay(wanted)
        self._given = wanted + self._data.num_batches + 1 - lease.skip
        return self._iterator

    def _take(self) -> Any:
        hand, self._hand = self._hand, None
        return hand if hand is not None else self._iterator.get_next()

    def _endless(self) -> tf.data.Dataset:
        """The user's minibatches, begun again where they end."""
        import tensorflow as tf

        data = self._data
        if isinstance(data.batches, tf.data.Dataset):
            if 0 <= (known := int(data.batches.cardinality())) < data.num_batches:
                self._warn(_ended(data.name, known, data.num_batches))
            return data.batches.repeat()
        batches = iter(data.batches)
        first = next_batch(batches)
        if first is None:
            raise DataError(f"The {data.name} generator gave no minibatch.")
        return self._from_generator(lambda: self._generate(first, batches), batch_spec(first))

    def _generate(self, first: Batch, batches: Iterator[Any]) -> Iterator[Batch]:
        yield first
        given, told = 1, False
        while True:
            while (batch := next_batch(batches)) is not None:
                given += 1
                yield batch
            if not given:
                raise DataError(
                    f"The {self._data.name} generator gave no minibatch when begun again."
                )
            if given < self._data.num_batches and not told:
                self._warn(_ended(self._data.name, given, self._data.num_batches))
                told = True
            batches, given = iter(self._make().batches), 0

    def _with_ends(self, dataset: tf.data.Dataset) -> tf.data.Dataset:
        """As optionals, with an empty one after each epoch."""
        import tensorflow as tf

        spec = dataset.element_spec
        empty = tf.data.Dataset.from_tensors(tf.experimental.Optional.empty(spec)).repeat()
        turns = tf.data.Dataset.range(self._data.num_batches + 1)
        turns = turns.map(lambda i: tf.cast(i == self._data.num_batches, tf.int64)).repeat()
        stream = tf.data.Dataset.choose_from_datasets(
            [dataset.map(optional(spec)), empty], turns, stop_on_empty_dataset=True
        )
        return stream.prefetch(prefetch_depth(spec))

    def _replay(self, wanted: int) -> None:
        """Read up to where the run was. What takes too long is cut short at the end of an epoch."""
        import tensorflow as tf

        skip = tf.function(_skip, autograph=False)
        epoch, began = self._data.num_batches + 1, time.monotonic()
        self._hand, self._given = None, self._given + 1
        while self._given < wanted:
            if time.monotonic() - began > REPLAY_S and self._given % epoch == wanted % epoch:
                self._warn(
                    f"Reading the data again up to epoch {wanted // epoch + 1} takes too long: the training goes "
                    f"on with the data in the order of epoch {self._given // epoch + 1}."
                )
                return
            boundary = (wanted - self._given) % epoch or epoch
            count = min(_CHUNK, boundary)
            skip(self._iterator, tf.constant(count))
            self._given += count


class EvaluationStream(_Stream):
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
            return _cut(data.batches.take(data.num_batches), data.num_points)
        batches = _in_python(data)
        first = next_batch(batches)
        if first is None:
            raise DataError(f"The {data.name} generator gave no minibatch.")
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
        left, num_batches = data.num_points, data.num_batches
        while num_batches and left and (batch := next_batch(batches)) is not None:
            if data.points is not None and data.points.ended:
                self._note_end(data)
                left = min(left, data.points.given - (data.num_points - left))
            batch = _rows(batch, left)
            left -= len(_first_array(batch))
            num_batches -= 1
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


def _skip(iterator: Any, count: tf.Tensor) -> tf.Tensor:
    import tensorflow as tf

    def body(i: tf.Tensor) -> tf.Tensor:
        with tf.control_dependencies([iterator.get_next().has_value()]):
            return i + 1

    return tf.while_loop(lambda i: i < count, body, [tf.constant(0)])


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


def _ended(name: str, given: int, wanted: int) -> str:
    return (
        f"The {name} data ended after {given} minibatches, and an epoch is said to have {wanted}: "
        "it is begun again inside of an epoch."
    )
