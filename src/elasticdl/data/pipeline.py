"""The user's dataset, traced once and opened anew for each lease.

The dataset graph is a `tf.function` of (shard, start, end, seed) that returns a dataset variant: the
user's code is traced once, and a lease costs a call of a millisecond or two. A fresh iterator a lease means that no
shuffle or prefetch buffer holds records of a lease that was already called done. Every reshuffling
`shuffle` of the user's is rewired to the lease's seed, so that a lease can be replayed.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from elasticdl.contract.dataset import PlainBatches
from elasticdl.contract.mode import Mode
from elasticdl.contract.spec import Batches
from elasticdl.data.ledger import Lease
from elasticdl.data.readers.arrays import ArraySource
from elasticdl.data.source import ArraySpec, Source
from elasticdl.errors import DataError

if TYPE_CHECKING:
    import tensorflow as tf

__all__ = ["Pipeline"]

PREFETCH_BYTES = 16 << 20


class Pipeline:
    """Minibatches of any lease of a source, through the user's dataset function.

    Args:
      source: where the records are.
      batches: the user's dataset function, with its batching.
      mode: what the dataset is for.
      batch_size: records in a minibatch.
      seed: the run's seed, from which each lease's follows.
    """

    def __init__(
        self,
        source: Source,
        batches: Batches,
        mode: Mode,
        batch_size: int,
        seed: int,
    ) -> None:
        self._ragged = False
        self._source = source
        self._batches = batches
        self._mode = mode
        self._batch_size = batch_size
        self._seed = seed
        self._is_sliced = isinstance(source, ArraySource) and isinstance(batches, PlainBatches)
        self._element_spec: Any = None
        self._failure: BaseException | None = None
        self._is_checked = False
        self._numbers = {shard.name: i for i, shard in enumerate(source.shards)}
        self._names = [shard.name for shard in source.shards]
        self._trace_anew()
        self._ahead = ThreadPoolExecutor(max_workers=1, thread_name_prefix="elasticdl-ahead")
        self._prepared: tuple[Lease, Future[Any]] | None = None

    def _trace_anew(self) -> None:
        import tensorflow as tf

        signature = [tf.TensorSpec([], tf.int64)] * 4
        self._build: Any = tf.function(
            self._dataset_variant, input_signature=signature, autograph=False
        )

    @property
    def ragged(self) -> bool:
        """Whether records of a minibatch may differ in shape."""
        return self._ragged

    @ragged.setter
    def ragged(self, value: bool) -> None:
        self._ragged = value
        self._trace_anew()

    def open(self, lease: Lease) -> Any:
        """A `tf.data.Iterator` over the lease's minibatches, after those that it skips."""
        prepared, self._prepared = self._prepared, None
        if prepared is not None and prepared[0] == lease:
            return prepared[1].result()
        return self._open(lease)

    def prepare(self, lease: Lease | None) -> None:
        """Open the lease in the background: its buffers fill while another one trains."""
        if lease is not None:
            self._prepared = (lease, self._ahead.submit(self._open, lease))

    def close(self) -> None:
        """Stop preparing and let go of what was prepared."""
        self._ahead.shutdown(wait=True, cancel_futures=True)
        self._prepared = None

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

        try:
            for _ in self._open(replace(lease, start=start, end=end, skip=0)):
                pass
        except tf.errors.OpError:
            return True
        return False

    def reraise(self) -> None:
        """Raise what the reader or the user's own code raised, when it was that which failed.

        TensorFlow turns a Python exception inside a dataset into an error of its own and keeps only its text.
        """
        failure = self._failure or getattr(self._batches, "failure", None)
        if failure is not None:
            raise failure from None

    def _open(self, lease: Lease) -> Any:
        import tensorflow as tf

        arguments = (self._numbers[lease.shard], lease.start, lease.end, lease.seed(self._seed))
        if tf.config.functions_run_eagerly():
            tf.random.set_seed(lease.seed(self._seed) & 0x7FFFFFFF)
        variant = self._build(*[tf.constant(a, tf.int64) for a in arguments])
        dataset = tf.data.experimental.from_variant(variant, self._element_spec)
        if not self._is_checked:
            self._check_that_it_ends(dataset)
        if lease.skip:
            dataset = dataset.skip(lease.skip)
        return iter(dataset)

    def _check_that_it_ends(self, dataset: tf.data.Dataset) -> None:
        import tensorflow as tf

        if int(dataset.cardinality()) == tf.data.INFINITE_CARDINALITY:
            raise DataError(
                "The dataset function repeats its records without end. Remove `.repeat()` from it: "
                "--num_epochs says how often the data is gone through."
            )
        self._is_checked = True

    def _dataset_variant(
        self, shard: tf.Tensor, start: tf.Tensor, end: tf.Tensor, seed: tf.Tensor
    ) -> tf.Tensor:
        import tensorflow as tf

        with warnings.catch_warnings():
            # That a map inherits the run's seed is what we want.
            warnings.filterwarnings("ignore", message="Seed .* from outer graph")
            dataset = self._minibatches(shard, start, end)
        if not tf.executing_eagerly():
            _reseed_shuffles(tf.compat.v1.get_default_graph(), seed)
        options = tf.data.Options()
        options.deterministic = True
        options.experimental_warm_start = True
        options.autotune.enabled = False
        if not self._is_sliced:  # slicing memory costs less than handing over between threads
            dataset = dataset.prefetch(_depth(dataset.element_spec))
        dataset = dataset.with_options(options)
        self._element_spec = dataset.element_spec
        return tf.data.experimental.to_variant(dataset)

    def _minibatches(self, shard: tf.Tensor, start: tf.Tensor, end: tf.Tensor) -> tf.data.Dataset:
        if self._is_sliced:
            assert isinstance(self._source, ArraySource) and isinstance(self._batches, PlainBatches)
            sliced = _sliced_batches(self._source, start, end, self._batch_size)
            return self._batches.finish(sliced, self._mode)
        records = self._records(shard, start, end)
        return self._batches(
            records, self._mode, self._source.metadata, self._batch_size, ragged=self._ragged
        )

    def _records(self, shard: tf.Tensor, start: tf.Tensor, end: tf.Tensor) -> tf.data.Dataset:
        import tensorflow as tf

        if isinstance(self._source, ArraySource):
            return _slices(self._source, start, end)
        signature = tf.nest.map_structure(
            lambda s: tf.TensorSpec([None, *s.shape], _tensor_type(s)), self._source.structure
        )
        chunks = tf.data.Dataset.from_generator(
            self._chunks, output_signature=signature, args=(shard, start, end)
        )
        return chunks.prefetch(2).unbatch()

    def _chunks(self, shard: Any, start: Any, end: Any) -> Iterator[Any]:
        try:
            yield from self._source.read(self._names[int(shard)], int(start), int(end))
        except GeneratorExit:
            raise
        except BaseException as error:
            self._failure = error
            raise


def _depth(element_spec: Any) -> int:
    """How many minibatches to hold ready: several of small ones, which cost more to hand over."""
    import tensorflow as tf

    size = 0
    for spec in tf.nest.flatten(element_spec):
        shape = getattr(spec, "shape", None)
        elements = 64
        for dimension in list(shape)[1:] if shape is not None and shape.rank else []:
            elements *= dimension or 1
        size += elements * getattr(getattr(spec, "dtype", None), "size", 4)
    return max(2, min(16, PREFETCH_BYTES // max(1, size)))


def _tensor_type(spec: ArraySpec) -> Any:
    import tensorflow as tf

    return tf.string if spec.dtype == np.dtype(object) else tf.as_dtype(spec.dtype)


def _slices(source: ArraySource, start: tf.Tensor, end: tf.Tensor) -> tf.data.Dataset:
    """Records of arrays that are in memory: sliced by TensorFlow, with no Python on the way."""
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices(
        tf.nest.map_structure(lambda t: t[start:end], source.tensors)
    )


def _sliced_batches(
    source: ArraySource, start: tf.Tensor, end: tf.Tensor, batch_size: int
) -> tf.data.Dataset:
    """The same in minibatches at once, for records that need no function of the user's."""
    import tensorflow as tf

    full = (end - start) // batch_size
    middle = start + full * batch_size

    def whole(array: tf.Tensor) -> tf.Tensor:
        shape = tf.concat([[full, batch_size], tf.shape(array, tf.int64)[1:]], 0)
        rows = tf.reshape(array[start:middle], shape)
        rows.set_shape([None, batch_size, *array.shape[1:]])
        return rows

    batches = tf.nest.map_structure(whole, source.tensors)
    rest = tf.nest.map_structure(lambda array: array[middle:end], source.tensors)
    last = tf.data.Dataset.from_tensors(rest).take(tf.cast(middle < end, tf.int64))
    return tf.data.Dataset.from_tensor_slices(batches).concatenate(last)


def _reseed_shuffles(graph: Any, seed: tf.Tensor) -> None:
    """Give the reshuffling `shuffle`s that the user built without the run's knowledge its seed."""
    shuffles = [op for op in graph.get_operations() if op.type == "ShuffleDatasetV3"]
    for place, op in enumerate(shuffles):
        if op.get_attr("reshuffle_each_iteration"):
            op._update_input(2, seed)
            op._update_input(3, seed + place + 1)
