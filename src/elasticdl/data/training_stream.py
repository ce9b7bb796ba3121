"""The stream that a training reads: made once and never begun anew, so its order depends on the seed alone."""

from __future__ import annotations

import time
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

__all__ = ["TrainingStream"]

REPLAY_S = 60.0
"""How long a run that goes on reads data again to be exactly where it was."""
TOLD_S = 2.0
_CHUNK = 64


class TrainingStream(Stream):
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
        _refuse_text(dataset.element_spec)
        if convert is not None:
            dataset = dataset.map(lambda *parts: convert(parts))
        self.element_spec = dataset.element_spec
        self._start(self._with_ends(dataset))
        self._hand: Any = None

    @property
    def first(self) -> Any:
        """The first minibatch, which is trained on all the same."""
        import tensorflow as tf

        if self._hand is None:
            try:
                self._hand = self._iterator.get_next()
            except tf.errors.OutOfRangeError:
                raise DataError(f"The {self._data.name} data gave no minibatch.") from None
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

    def read_up_to(self, epoch: int) -> None:
        """Get the work of going on in that epoch, or in a later one, done before it is waited for."""
        wanted = epoch * (self._data.num_batches + 1)
        if wanted > self._given:
            self._replay(wanted)

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
            raise DataError(f"The {data.name} data gave no minibatch.")
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
        told = False
        if self._hand is not None:
            self._hand, self._given = None, self._given + 1
        while self._given < wanted:
            if time.monotonic() - began > TOLD_S and not told:
                self._warn(
                    f"The data is read again up to epoch {wanted // epoch + 1}, to go on exactly where the run was."
                )
                told = True
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


def _refuse_text(spec: Any) -> None:
    import tensorflow as tf

    weights = spec[2] if isinstance(spec, tuple) and len(spec) == 3 else ()
    if any(one.dtype == tf.string for one in tf.nest.flatten(weights)):
        raise DataError(
            "The third part of the training data is a sample weight, and it is no number here. Give 1 where all data "
            "points weigh the same."
        )


def _skip(iterator: Any, count: tf.Tensor) -> tf.Tensor:
    import tensorflow as tf

    def body(i: tf.Tensor) -> tf.Tensor:
        with tf.control_dependencies([iterator.get_next().has_value()]):
            return i + 1

    return tf.while_loop(lambda i: i < count, body, [tf.constant(0)])


def _ended(name: str, given: int, wanted: int) -> str:
    return (
        f"The {name} data ended after {given} minibatches, and an epoch is said to have {wanted}: "
        "it is begun again inside of an epoch."
    )
