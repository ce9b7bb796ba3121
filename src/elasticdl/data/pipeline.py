"""Leases in, minibatches out: one iterator for all leases of a run.

The user's dataset function is traced once, as a function of (shard, start, end, seed), inside of a
`flat_map` over the leases. A lease is fed to it through a queue; after the lease's minibatches comes an
empty one, so no shuffle or prefetch buffer ever holds records of a lease that is already called done. One
iterator serves all leases because a new one costs tens of milliseconds: TensorFlow would prepare the user's
functions anew. The next lease is fed early, and its minibatches are made while this one trains.
"""

from __future__ import annotations

import queue
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from elasticdl.contract.mode import Mode
from elasticdl.contract.spec import Batches
from elasticdl.data.in_place import run_maps_in_place
from elasticdl.data.ledger import Lease
from elasticdl.data.minibatches import Minibatches, prefetch_depth
from elasticdl.data.source import Source

if TYPE_CHECKING:
    import tensorflow as tf

__all__ = ["ENDLESS", "Leases", "Pipeline", "optional"]

ENDLESS = "the dataset function repeats its records without end"


class Leases(Protocol):
    """Where the engine gets the minibatches of a lease: a `Pipeline`, or a stream of the user's own."""

    is_replayed: bool
    """Whether a run that goes on reads all of it again, so that random numbers are drawn as before."""

    @property
    def element_spec(self) -> Any: ...

    def open(self, lease: Lease) -> Any: ...

    def begin(self, lease: Lease) -> tuple[Any, Any]: ...

    def prepare(self, lease: Lease | None) -> None: ...

    def finish(self, lease: Lease) -> None: ...

    def elements(self, lease: Lease) -> Iterator[Any]: ...

    def find_fault(self, lease: Lease) -> int | None: ...

    def reraise(self) -> None: ...

    def close(self) -> None: ...


class Pipeline:
    """Minibatches of any lease of a source, through the user's dataset function.

        iterator = pipeline.open(lease)
        while (minibatch := iterator.get_next()).has_value():
            ...minibatch.get_value()...
        pipeline.finish(lease)

    In a graph too, `iterator.get_next()` gives a `tf.experimental.Optional` that is empty at the
    lease's end.
    """

    is_replayed = False

    def __init__(
        self, source: Source, batches: Batches, mode: Mode, batch_size: int, seed: int
    ) -> None:
        self._minibatches = Minibatches(source, batches, mode, batch_size)
        self._numbers = {shard.name: i for i, shard in enumerate(source.shards)}
        self._seed = seed
        self._dataset: Any = None
        self._element_spec: Any = None
        self._iterator: Any = None
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._fed: list[Lease] = []
        """The leases that the iterator was given and that are not finished, in order."""
        self._opened: Lease | None = None

    @property
    def ragged(self) -> bool:
        """Whether records of a minibatch may differ in shape."""
        return self._minibatches.ragged

    @ragged.setter
    def ragged(self, value: bool) -> None:
        self._minibatches.ragged = value
        self.close()
        self._dataset = None

    @property
    def element_spec(self) -> Any:
        """The types and shapes of minibatches; None as long as none was made in a graph."""
        return self._element_spec

    def open(self, lease: Lease) -> Any:
        """An iterator that stands at the lease's first minibatch, after those that it skips."""
        import tensorflow as tf

        if tf.config.functions_run_eagerly():
            return _EagerLease(self._eager_dataset(lease))
        if self._opened is not None or (self._fed and self._fed[0] != lease):
            self.close()  # somewhere else than where the iterator stands
        self.prepare(lease)
        self._opened = lease
        return self._iterator

    def begin(self, lease: Lease) -> tuple[Any, Any]:
        """The iterator, and the first minibatch of the lease."""
        iterator = self.open(lease)
        return iterator, iterator.get_next()

    def prepare(self, lease: Lease | None) -> None:
        """Feed the lease that comes next: its minibatches are made while another one trains."""
        import tensorflow as tf

        if lease is None or lease in self._fed or tf.config.functions_run_eagerly():
            return
        if self._iterator is None:
            self._iterator = self._start()
        self._fed.append(lease)
        self._queue.put(self._arguments(lease))

    def finish(self, lease: Lease) -> None:
        """The lease's end was reached: the iterator stands before the next one."""
        if self._opened == lease:
            self._fed.remove(lease)
            self._opened = None

    def elements(self, lease: Lease) -> Iterator[Any]:
        """The lease's minibatches, in Python."""
        iterator = self.open(lease)
        while (minibatch := iterator.get_next()).has_value():
            yield minibatch.get_value()
        self.finish(lease)

    def close(self, *, wait: bool = True) -> None:
        """Let go of the iterator, which waits for its threads. One waits for leases: it is told to end.

        Another may be in a user's reader that is stuck: who cannot wait for that keeps the iterator.
        """
        self._queue.put(None)
        if not wait:
            return
        self._iterator = self._opened = None
        self._fed = []
        self._queue = queue.SimpleQueue()

    def find_fault(self, lease: Lease) -> int | None:
        """The first record of the lease that the dataset function fails on, by halving; or None."""
        start, end = lease.start, lease.end
        if not self._fails(lease, start, end):
            return None
        while end - start > 1:
            middle = (start + end) // 2
            if self._fails(lease, start, middle):
                end = middle
            else:
                start = middle
        return start

    def _fails(self, lease: Lease, start: int, end: int) -> bool:
        import tensorflow as tf

        self.close()
        try:
            for _ in self.elements(replace(lease, start=start, end=end, skip=0)):
                pass
        except tf.errors.OpError:
            return True
        return False

    def reraise(self) -> None:
        """Raise what the reader or the user's own code raised, when it was that which failed."""
        if self._minibatches.failure is not None:
            raise self._minibatches.failure from None

    def _arguments(self, lease: Lease) -> Any:
        shard, seed = self._numbers[lease.shard], lease.seed(self._seed)
        return np.array([shard, lease.start, lease.end, seed, lease.skip], np.int64)

    def _start(self) -> Any:
        import tensorflow as tf

        if self._dataset is None:
            self._dataset = self._stream()
        with tf.device("CPU:0"):
            return iter(self._dataset)

    def _stream(self) -> tf.data.Dataset:
        """The endless dataset of optional minibatches, an empty one after each lease."""
        import tensorflow as tf

        leases = tf.data.Dataset.from_generator(
            self._leases, output_signature=tf.TensorSpec([5], tf.int64)
        )
        dataset = leases.flat_map(tf.autograph.experimental.do_not_convert(self._of_one_lease))
        dataset = dataset.prefetch(prefetch_depth(self._element_spec))
        options = tf.data.Options()
        options.deterministic = True
        options.autotune.enabled = False
        options.experimental_optimization.map_and_batch_fusion = False  # see in_place.py
        return dataset.with_options(options)

    def _leases(self) -> Iterator[Any]:
        source = self._queue
        while (arguments := source.get()) is not None:
            yield arguments

    def _of_one_lease(self, lease: tf.Tensor) -> tf.data.Dataset:
        import tensorflow as tf

        dataset = self._minibatches.dataset(lease[0], lease[1], lease[2], lease[3])
        endless = dataset.cardinality() == tf.data.INFINITE_CARDINALITY
        with tf.control_dependencies([tf.debugging.Assert(~endless, [ENDLESS])]):
            dataset = dataset.skip(tf.identity(lease[4]))
        self._element_spec = spec = dataset.element_spec
        end = tf.data.Dataset.from_tensors(tf.experimental.Optional.empty(spec))
        dataset = dataset.map(optional(spec)).concatenate(end)
        run_maps_in_place(tf.compat.v1.get_default_graph())
        return dataset

    def _eager_dataset(self, lease: Lease) -> tf.data.Dataset:
        """A dataset of its own for each lease: what `--debug` runs, where a debugger can stop."""
        import tensorflow as tf

        tf.random.set_seed(lease.seed(self._seed) & 0x7FFFFFFF)
        shard, start, end, seed, skip = tf.unstack(tf.constant(self._arguments(lease)))
        dataset = self._minibatches.dataset(shard, start, end, seed)
        tf.debugging.Assert(dataset.cardinality() != tf.data.INFINITE_CARDINALITY, [ENDLESS])
        return dataset.skip(skip)


class _EagerLease:
    """An iterator over one lease, by Python."""

    def __init__(self, dataset: tf.data.Dataset) -> None:
        self._dataset = dataset  # it owns the Python functions that it calls
        self._iterator = iter(dataset)

    def get_next(self) -> Any:
        return self._iterator.get_next_as_optional()


def optional(spec: Any) -> Any:
    """Wraps an element of a dataset into an `Optional`."""
    import tensorflow as tf

    def wrap(*parts: Any) -> Any:
        return tf.experimental.Optional.from_value(parts if isinstance(spec, tuple) else parts[0])

    return tf.autograph.experimental.do_not_convert(wrap)
