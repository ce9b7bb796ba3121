"""Minibatches of a table: of chunks, of tf.Examples, of single rows; in the order of the seed, with labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf
from tables import arrays_of, people, plan_of

from elasticdl.errors import DataError
from elasticdl.tabular.inputs import TableBatches, to_examples
from elasticdl.tabular.plan import Column, FeaturePlan, Label

pytestmark = pytest.mark.usefixtures("tensorflow")

SEED = tf.constant(5, tf.int64)


def numbers(num_rows: int = 100) -> tuple[pa.Table, FeaturePlan]:
    rows = pa.table({"x": np.arange(num_rows, dtype=np.float32), "y": np.arange(num_rows) * 2.0})
    return rows, plan_of(rows, "y", task="regression")


def chunks_of(
    rows: pa.Table, plan: FeaturePlan, size: int, *, label: bool = True
) -> tf.data.Dataset:
    arrays = arrays_of(rows, plan, label=label)
    signature = {
        name: tf.TensorSpec([None], tf.string if values.dtype == object else values.dtype)
        for name, values in arrays.items()
    }

    def chunks() -> Iterator[dict[str, Any]]:
        for start in range(0, rows.num_rows, size):
            yield {name: values[start : start + size] for name, values in arrays.items()}

    return tf.data.Dataset.from_generator(chunks, output_signature=signature)


def xs(dataset: tf.data.Dataset) -> list[list[float]]:
    return [features["x"].numpy().tolist() for features, _ in dataset]


@pytest.mark.parametrize("size", [7, 32, 1000])
def test_evaluation_is_in_order_in_full_minibatches(size: int) -> None:
    rows, plan = numbers()
    batches = TableBatches(plan).from_chunks(chunks_of(rows, plan, size), "evaluation", 32, SEED)
    found = xs(batches)
    assert [len(batch) for batch in found] == [32, 32, 32, 4]
    assert [x for batch in found for x in batch] == list(range(100))


def test_prediction_gives_features_alone_and_needs_no_label() -> None:
    rows, plan = numbers()
    chunks = chunks_of(rows.select(["x"]), plan, 30, label=False)
    batches = TableBatches(plan).from_chunks(chunks, "prediction", 64, SEED)
    assert [batch["x"].shape[0] for batch in batches] == [64, 36]


def test_training_mixes_all_rows_of_a_lease_by_the_seed_alone() -> None:
    rows, plan = numbers()
    batches = TableBatches(plan)

    def order(size: int, seed: int) -> list[float]:
        chunks = chunks_of(rows, plan, size)
        dataset = batches.from_chunks(chunks, "training", 32, tf.constant(seed, tf.int64))
        return [x for batch in xs(dataset) for x in batch]

    first = order(40, 1)
    assert sorted(first) == list(range(100)) != first
    assert max(first[:20]) > 60  # mixed over all chunks
    assert order(40, 1) == first == order(100, 1)
    assert order(40, 2) != first


def test_labels_stay_with_their_rows() -> None:
    rows, plan = numbers()
    for features, label in TableBatches(plan).from_chunks(
        chunks_of(rows, plan, 9), "training", 16, SEED
    ):
        assert label.dtype == tf.float32 and label.shape[1] == 1
        np.testing.assert_array_equal(label[:, 0], features["x"] * 2)


@pytest.mark.parametrize(
    "values", [["b", "a", "ü"], [7, -3, 9], [True, False, True], [2.0, 0.0, 5.0]], ids=str
)
def test_classes_are_numbered_in_their_order(values: list[Any]) -> None:
    rows = pa.table({"x": [1, 2, 3], "y": values})
    plan = plan_of(rows, "y", task="classification")
    ((_, label),) = TableBatches(plan).from_chunks(chunks_of(rows, plan, 3), "evaluation", 3, SEED)
    assert label.dtype == tf.int64
    assert plan.label is not None
    assert [plan.label.classes[i] for i in label.numpy()[:, 0]] == values


def test_classes_are_looked_up_inside_of_graphs_too() -> None:
    rows = pa.table({"x": [1, 2], "y": ["b", "a"]})
    plan = plan_of(rows, "y")
    batches = TableBatches(plan)

    @tf.function
    def run() -> tf.Tensor:
        leases = tf.data.Dataset.range(2)
        dataset = leases.flat_map(
            lambda _: batches.from_chunks(chunks_of(rows, plan, 2), "evaluation", 2, SEED)
        )
        return dataset.reduce(
            tf.constant(0, tf.int64), lambda total, one: total + tf.reduce_sum(one[1])
        )

    assert int(run()) == 2


def test_a_value_that_is_no_class_is_named() -> None:
    rows = pa.table({"x": [1, 2], "y": ["a", "b"]})
    plan = plan_of(rows, "y")
    strange = pa.table({"x": [1, 2], "y": ["a", "zebra"]})
    batches = TableBatches(plan).from_chunks(chunks_of(strange, plan, 2), "evaluation", 2, SEED)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"label y has a value.*\(a, b\).*zebra"
    ):
        list(batches)


def test_a_label_that_is_null_is_refused() -> None:
    _, plan = numbers(3)
    strange = pa.table({"x": [1.0], "y": pa.array([None], pa.float64())})
    batches = TableBatches(plan).from_chunks(chunks_of(strange, plan, 2), "evaluation", 2, SEED)
    with pytest.raises(tf.errors.InvalidArgumentError, match="label y is NULL"):
        list(batches)


def test_examples_are_what_tensorflow_reads() -> None:
    rows = pa.table(
        {
            "f": pa.array([1.5, None]),
            "i": pa.array([-(2**62), 300]),
            "s": ["ü", None],
            "wide": pa.array([2**40 + 1, 2**40]),
            "exact": pa.array([1e9 + 0.123456, 1e9]),
            "y": ["a", "b"],
        }
    )
    columns = (
        Column("f", "float32", "double"),
        Column("i", "int64", "int64"),
        Column("s", "string", "string"),
        Column("wide", "float64", "int64"),
        Column("exact", "float64", "double"),
    )
    plan = FeaturePlan(columns, (), Label("y", "classification", "string", ("a", "b"), "string"))
    (batch,) = rows.to_batches()
    first, second = (
        tf.train.Example.FromString(one) for one in to_examples(batch, plan, with_label=True)
    )
    feature = first.features.feature
    assert feature["f"].float_list.value == [1.5]
    assert feature["i"].int64_list.value == [-(2**62)]
    assert feature["s"].bytes_list.value == ["ü".encode()]
    assert feature["wide"].int64_list.value == [2**40 + 1]
    assert feature["exact"].bytes_list.value == [b"1000000000.123456"]
    assert feature["y"].bytes_list.value == [b"a"]
    assert set(second.features.feature) == {"i", "wide", "exact", "y"}
    unlabelled = tf.train.Example.FromString(to_examples(batch, plan, with_label=False)[0])
    assert "y" not in unlabelled.features.feature


@pytest.mark.parametrize("value", [0, 1, 127, 128, 2**14, 2**35 - 1, 2**63 - 1, -1, -(2**63) + 1])
def test_whole_numbers_of_every_length_are_written(value: int) -> None:
    plan = FeaturePlan((Column("i", "int64", "int64"),), ())
    (record,) = to_examples(pa.record_batch({"i": [value]}), plan, with_label=False)
    assert tf.train.Example.FromString(record).features.feature["i"].int64_list.value == [value]


@pytest.mark.parametrize("length", [0, 1, 100, 128, 20_000])
def test_texts_of_every_length_are_written(length: int) -> None:
    plan = FeaturePlan((Column("a long name " * 20, "string", "string"),), ())
    batch = pa.RecordBatch.from_arrays([pa.array(["x" * length])], [plan.columns[0].name])
    (record,) = to_examples(batch, plan, with_label=False)
    features = tf.train.Example.FromString(record).features.feature
    assert [len(one.bytes_list.value[0]) for one in features.values()] == (
        [length] if length else []
    )


def test_examples_come_back_as_the_columns_that_they_were(
    table: pa.Table, plan: FeaturePlan
) -> None:
    (batch,) = table.combine_chunks().to_batches()
    records = tf.data.Dataset.from_tensor_slices(to_examples(batch, plan, with_label=True))
    expected = arrays_of(table, plan)
    found = list(TableBatches(plan)(records, "evaluation", None, 64))
    assert [label.shape[0] for _, label in found] == [64, 64, 64, 64, 44]
    for name, values in expected.items():
        read = np.concatenate([features[name] for features, _ in found])
        np.testing.assert_array_equal(read, values, name)


def test_examples_without_a_label_are_predicted(table: pa.Table, plan: FeaturePlan) -> None:
    (batch,) = table.slice(0, 10).combine_chunks().to_batches()
    records = tf.data.Dataset.from_tensor_slices(to_examples(batch, plan, with_label=False))
    (features,) = TableBatches(plan)(records, "prediction", None, 64)
    assert set(features) == {column.name for column in plan.columns}


def test_training_examples_are_shuffled(table: pa.Table, plan: FeaturePlan) -> None:
    (batch,) = table.combine_chunks().to_batches()
    records = tf.data.Dataset.from_tensor_slices(to_examples(batch, plan, with_label=True))
    (one,) = TableBatches(plan)(records, "training", None, 1000)
    scores = one[0]["score"].numpy()
    expected = arrays_of(table, plan)["score"]
    assert not np.array_equal(scores, expected)
    np.testing.assert_array_equal(np.sort(scores), np.sort(expected))


def test_rows_of_texts_are_read_by_the_types_of_the_plan() -> None:
    plan = FeaturePlan(
        (Column("x", "float32"), Column("i", "int64"), Column("s", "string")),
        (),
        Label("y", "regression", "float32"),
    )
    records = tf.data.Dataset.from_tensor_slices(
        {"x": ["1.5", ""], "i": ["7", ""], "s": [1, 2], "y": [1, 2], "more": [0, 0]}
    )
    ((features, label),) = TableBatches(plan)(records, "evaluation", None, 8)
    np.testing.assert_array_equal(features["x"], [1.5, np.nan])
    assert features["i"].numpy().tolist() == [7, -(2**63)]
    assert features["s"].numpy().tolist() == [b"1", b"2"]
    assert label.numpy().tolist() == [[1], [2]]
    assert set(features) == {"x", "i", "s"}


def test_records_without_a_column_are_refused() -> None:
    _, plan = numbers(3)
    records = tf.data.Dataset.from_tensor_slices({"X1": [1.0], "y": [1.0]})
    with pytest.raises(DataError, match="no column 'x'"):
        TableBatches(plan)(records, "evaluation", None, 8)


def test_records_of_another_form_are_refused() -> None:
    _, plan = numbers(3)
    records = tf.data.Dataset.from_tensor_slices([[1.0, 2.0]])
    with pytest.raises(DataError, match=r"reads tf.Examples or rows of named columns"):
        TableBatches(plan)(records, "evaluation", None, 8)


def test_training_without_a_label_is_refused() -> None:
    rows = pa.table({"x": [1.0, 2.0]})
    plan = plan_of(rows)
    with pytest.raises(DataError, match="no label"):
        TableBatches(plan).from_chunks(chunks_of(rows, plan, 2), "training", 2, SEED)


def test_the_input_of_a_plan_says_that_it_takes_chunks() -> None:
    assert TableBatches(plan_of(people(50), "salary")).takes_chunks
