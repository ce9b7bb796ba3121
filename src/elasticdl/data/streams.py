"""The user's own stream of minibatches as leases: an epoch, or a pass over the data, is one lease.

Elsewhere in this room records are ours to cut and to shuffle. Here the user has made the minibatches, as a
`tf.data.Dataset` or in a Python generator, and says how many of them an epoch has. A stream for training is made
once and never begun anew, as `fit` does it, so its order depends on the seed alone; a run that goes on reads up to
where it was. A stream for evaluation begins anew at each pass and gives each data point exactly once, however its
generator repeats, pads or ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from elasticdl.data.generators import Batch, PointSource, check_batch
from elasticdl.data.ledger import Lease
from elasticdl.data.source import Shard

if TYPE_CHECKING:
    import tensorflow as tf

__all__ = ["Stream", "StreamData"]


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
    limit: int | None = None
    """The minibatches of a pass that are of interest; None for all data points."""


class Stream:
    """What both kinds have: one iterator of optional minibatches, of which an empty one ends a lease."""

    is_replayed = True

    def __init__(self, data: StreamData) -> None:
        self.name = data.name
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

        # The thread that tunes buffers and threads may sleep through the end, and `close` waits for it: up to a minute.
        options = tf.data.Options()
        options.autotune.enabled = False
        with tf.device("CPU:0"):
            self._iterator = iter(dataset.with_options(options))

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
