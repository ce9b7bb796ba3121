"""A user's maps run without a pool of threads, whatever they do, and give what TensorFlow gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from elasticdl.contract.dataset import bind_dataset
from elasticdl.contract.mode import Mode
from elasticdl.data.in_place import run_maps_in_place
from elasticdl.data.ledger import Ledger
from elasticdl.data.pipeline import Pipeline
from elasticdl.data.readers.arrays import ArraySource

pytestmark = pytest.mark.usefixtures("tensorflow")


def plain(number: Any) -> Any:
    return tf.cast(number, tf.float32) / 3.0


def condition(number: Any) -> Any:
    return tf.cond(number % 2 == 0, lambda: number * 2, lambda: number - 1)


def by_autograph(number: Any) -> Any:
    total = tf.constant(0, tf.int64)
    for one in tf.range(number):
        if one > 2:
            total += one
    return total


def loop(number: Any) -> Any:
    return tf.reduce_sum(tf.map_fn(lambda one: one * one, tf.range(number + 1)))


def checked(number: Any) -> Any:
    tf.debugging.assert_less(number, tf.constant(100, tf.int64))
    return number


def cases(number: Any) -> Any:
    branches = [lambda: number, lambda: number + 1, lambda: number * 3]
    return tf.switch_case(tf.cast(number % 3, tf.int32), branches)


def python(number: Any) -> Any:
    return tf.numpy_function(lambda one: one + 1, [number], tf.int64)


def nested(number: Any) -> Any:
    @tf.function
    def doubled(one: Any) -> Any:
        return one * 2 if one > 2 else one

    return doubled(number)


def summed(number: Any) -> Any:
    return tf.data.Dataset.range(number + 1).reduce(tf.constant(0, tf.int64), lambda a, b: a + b)


def looked_up(number: Any) -> Any:
    keys = tf.lookup.KeyValueTensorInitializer(["1", "2"], [10, 20])
    return tf.lookup.StaticHashTable(keys, -1).lookup(tf.strings.as_string(number))


BRANCHING = [condition, by_autograph, loop, checked, cases, nested]
STRAIGHT = [plain, python, summed, looked_up]


@pytest.mark.parametrize("function", [*STRAIGHT, *BRANCHING], ids=lambda f: f.__name__)
def test_minibatches_are_those_of_tensorflow(function: Callable[[Any], Any]) -> None:
    numbers = np.arange(7)
    source = ArraySource((numbers, numbers))
    batches = bind_dataset(lambda dataset, mode: dataset.map(lambda x, y: (function(x), y)))
    pipeline = Pipeline(source, batches, Mode.TRAINING, 3, seed=0)
    lease = Ledger(source.shards, records_per_lease=7).lease()
    assert lease is not None
    given = np.concatenate([np.asarray(x) for x, _ in pipeline.elements(lease)])
    pipeline.close()
    expected = [x.numpy() for x in tf.data.Dataset.from_tensor_slices(numbers).map(function)]
    np.testing.assert_array_equal(np.sort(given), np.sort(expected))


@pytest.mark.parametrize("function", [*STRAIGHT, *BRANCHING], ids=lambda f: f.__name__)
def test_only_maps_without_conditions_and_loops_do_without_the_pool(
    function: Callable[[Any], Any],
) -> None:
    uses_pool = []

    def one_lease(_: Any) -> Any:
        dataset = tf.data.Dataset.range(3).map(function)
        graph = tf.compat.v1.get_default_graph()
        run_maps_in_place(graph)
        (op,) = [op for op in graph.get_operations() if op.type == "MapDataset"]
        uses_pool.append(op.get_attr("use_inter_op_parallelism"))
        return dataset

    tf.data.Dataset.range(1).flat_map(one_lease)
    assert uses_pool == [function in BRANCHING]
