"""The graph from a range of records to minibatches, through the user's dataset function."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from elasticdl.contract.dataset import PlainBatches
from elasticdl.contract.mode import Mode
from elasticdl.contract.spec import Batches
from elasticdl.data.readers.arrays import ArraySource
from elasticdl.data.source import ArraySpec, Source
from elasticdl.errors import ContractError

if TYPE_CHECKING:
    import tensorflow as tf

__all__ = ["Minibatches", "prefetch_depth"]

PREFETCH_BYTES = 16 << 20


class Minibatches:
    """Datasets of minibatches of any range of a source.

    Args:
      source: where the records are.
      batches: the user's dataset function, with its batching.
      mode: what the dataset is for.
      batch_size: records in a minibatch.
    """

    def __init__(self, source: Source, batches: Batches, mode: Mode, batch_size: int) -> None:
        self.ragged = False
        """Whether records of a minibatch may differ in shape."""
        self._source = source
        self._batches = batches
        self._mode = mode
        self._batch_size = batch_size
        self._names = [shard.name for shard in source.shards]
        self._failure: BaseException | None = None
        self._autograph = _autograph_status()

    @property
    def failure(self) -> BaseException | None:
        """What a reader or the user's Python code raised: TensorFlow keeps only its text."""
        return self._failure or getattr(self._batches, "failure", None)

    def dataset(
        self, shard: tf.Tensor, start: tf.Tensor, end: tf.Tensor, seed: tf.Tensor
    ) -> tf.data.Dataset:
        """The minibatches of the records [start, end) of a shard, shuffled by the seed."""
        import tensorflow as tf

        with warnings.catch_warnings():
            # That a map inherits the run's seed is what we want.
            warnings.filterwarnings("ignore", message="Seed .* from outer graph")
            dataset = self._unseeded(shard, start, end, seed)
        if not tf.executing_eagerly():
            graph = tf.compat.v1.get_default_graph()
            _refuse_cache_files(graph)
            if self._mode == Mode.PREDICTION:
                _keep_order(graph)
            else:
                _reseed_shuffles(graph, seed)
        elif self._mode == Mode.PREDICTION:
            _refuse_shuffles(dataset)
        return dataset

    def _unseeded(
        self, shard: tf.Tensor, start: tf.Tensor, end: tf.Tensor, seed: tf.Tensor
    ) -> tf.data.Dataset:
        if isinstance(self._source, ArraySource) and isinstance(self._batches, PlainBatches):
            sliced = _sliced_batches(self._source, start, end, self._batch_size)
            return self._batches.finish(sliced, self._mode)
        if hasattr(self._batches, "from_chunks") and isinstance(self._source.structure, Mapping):
            # Of tables: a record by itself is never needed.
            chunks = self._chunked(shard, start, end)
            tables: tf.data.Dataset = self._batches.from_chunks(
                chunks, self._mode, self._batch_size, seed
            )
            return tables
        records = self._records(shard, start, end)
        with self._autograph:
            return self._batches(
                records, self._mode, self._source.metadata, self._batch_size, ragged=self.ragged
            )

    def _records(self, shard: tf.Tensor, start: tf.Tensor, end: tf.Tensor) -> tf.data.Dataset:
        import tensorflow as tf

        if isinstance(self._source, ArraySource):
            return tf.data.Dataset.from_tensor_slices(
                tf.nest.map_structure(lambda t: t[start:end], self._source.tensors)
            )
        return self._chunked(shard, start, end).unbatch()

    def _chunked(self, shard: tf.Tensor, start: tf.Tensor, end: tf.Tensor) -> tf.data.Dataset:
        import tensorflow as tf

        signature = tf.nest.map_structure(
            lambda s: tf.TensorSpec([None, *s.shape], _tensor_type(s)), self._source.structure
        )
        chunks = tf.data.Dataset.from_generator(
            self._chunks, output_signature=signature, args=(shard, start, end)
        )
        return chunks.prefetch(2)

    def _chunks(self, shard: Any, start: Any, end: Any) -> Iterator[Any]:
        try:
            yield from self._source.read(self._names[int(shard)], int(start), int(end))
        except GeneratorExit:
            raise
        except BaseException as error:
            self._failure = error
            raise


def prefetch_depth(element_spec: Any) -> int:
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


def _autograph_status() -> Any:
    """Whether `if` and `for` may be about tensors: our own graph has none, what it calls of the user's may."""
    import tensorflow as tf

    return tf.__internal__.autograph.control_status_ctx()


def _tensor_type(spec: ArraySpec) -> Any:
    import tensorflow as tf

    return tf.string if spec.dtype == np.dtype(object) else tf.as_dtype(spec.dtype)


def _sliced_batches(
    source: ArraySource, start: tf.Tensor, end: tf.Tensor, batch_size: int
) -> tf.data.Dataset:
    """Minibatches of arrays in memory: no Python and no record by record on the way."""
    import tensorflow as tf

    full = (end - start) // batch_size
    middle = start + full * batch_size

    def whole(array: tf.Tensor) -> tf.Tensor:
        shape = tf.concat([[full, batch_size], tf.shape(array, tf.int64)[1:]], 0)
        rows = tf.reshape(array[start:middle], shape)
        if not tf.executing_eagerly():
            rows.set_shape([None, batch_size, *array.shape[1:]])
        return rows

    batches = tf.nest.map_structure(whole, source.tensors)
    rest = tf.nest.map_structure(lambda array: array[middle:end], source.tensors)
    last = tf.data.Dataset.from_tensors(rest).take(tf.cast(middle < end, tf.int64))
    return tf.data.Dataset.from_tensor_slices(batches).concatenate(last)


def _refuse_cache_files(graph: Any) -> None:
    """A cache in a file would give every lease the records of the first."""
    import tensorflow as tf

    for op in graph.get_operations():
        if op.type.startswith("CacheDataset") and tf.get_static_value(op.inputs[1]) != b"":
            raise ContractError(
                "The dataset function caches in a file, which would hand the first records out for "
                "all others. Use `.cache()` without a file, or none."
            )


def _keep_order(graph: Any) -> None:
    """Predictions come in the order of the records: a buffer of one record shuffles nothing."""
    import tensorflow as tf

    for op in graph.get_operations():
        if op.type.startswith("ShuffleDataset"):
            op._update_input(1, tf.constant(1, tf.int64))


def _refuse_shuffles(dataset: Any) -> None:
    """The same without a graph, where a shuffle cannot be changed any more."""
    if type(dataset).__name__ == "_ShuffleDataset":
        raise ContractError(
            "The dataset function shuffles in prediction mode. Without --debug the order is kept all the "
            "same; with it, shuffle only `if mode == Mode.TRAINING`."
        )
    for source in dataset._inputs():
        _refuse_shuffles(source)


def _reseed_shuffles(graph: Any, seed: tf.Tensor) -> None:
    """Give the reshuffling `shuffle`s that the user built without the run's knowledge its seed."""
    shuffles = [op for op in graph.get_operations() if op.type == "ShuffleDatasetV3"]
    for place, op in enumerate(shuffles):
        if op.get_attr("reshuffle_each_iteration"):
            op._update_input(2, seed)
            op._update_input(3, seed + place + 1)
