"""What a dataset function looks at, found by exchanging values; in doubt, a column is needed."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from elasticdl import Mode
from elasticdl.contract.dataset import bind_dataset
from elasticdl.data.registry import open_source
from elasticdl.runtime.needed_columns import Needed, find_needed

Parse = Callable[[Any], Any]
COUNT = 400
CHOICE = np.random.default_rng(0)
TABLE = {
    "a": CHOICE.normal(size=COUNT).tolist(),
    "b": CHOICE.normal(size=COUNT).tolist(),
    "k": CHOICE.choice(["red", "blue", "green"], COUNT).tolist(),
    "y": CHOICE.integers(0, 3, COUNT).tolist(),
}


def number(value: Any) -> Any:
    return tf.strings.to_number(value)


def write(table: dict[str, Sequence[Any]], path: str = "data.csv") -> str:
    rows = [list(table), *zip(*table.values(), strict=True)]
    text = "".join(",".join(map(str, row)) + "\n" for row in rows).encode()
    Path(path).write_bytes(gzip.compress(text) if path.endswith(".gz") else text)
    return path


def needed(
    features: Parse,
    table: dict[str, Sequence[Any]] = TABLE,
    label: Parse | None = None,
    **options: Any,
) -> Any:
    return found(lambda ds, mode: ds.map(features), table, label, **options).columns


def found(
    features: Callable[..., Any],
    table: dict[str, Sequence[Any]] = TABLE,
    label: Parse | None = None,
    path: str = "data.csv",
) -> Needed:
    def dataset_fn(dataset: Any, mode: str) -> Any:
        if label is None:
            return features(dataset, mode)
        return tf.data.Dataset.zip((features(dataset, mode), dataset.map(label)))

    batches = bind_dataset(dataset_fn)
    source = open_source(write(table, path), {})
    records = tf.data.Dataset.from_tensors(tf.constant([b"0"] * len(table)))
    shapes = batches(records, Mode.EVALUATION, source.metadata, 1).element_spec
    return find_needed(batches, source, shapes[0] if label else shapes)


def test_what_a_feature_is_made_of_is_needed() -> None:
    assert needed(lambda row: number(row[:2])) == ("a", "b")
    assert needed(lambda row: {"x": number(row[0]), "k": row[2]}) == ("a", "k")
    assert needed(lambda row: tf.cast(row[2] == ["red", "blue"], tf.float32)) == ("k",)
    assert needed(lambda row: number(row[1]) > 2.0) == ("b",)


def test_what_is_mixed_with_others_is_needed() -> None:
    assert needed(lambda row: number(row[0]) * number(row[1])) == ("a", "b")
    assert needed(lambda row: tf.strings.to_hash_bucket_fast(row[0] + row[1] + row[2], 9)) == (
        "a",
        "b",
        "k",
    )
    same = {**TABLE, "b": TABLE["a"]}
    assert needed(lambda row: row[0] == row[1], same) == ("a", "b")


def test_the_label_is_not_needed_when_it_is_read_and_dropped() -> None:
    assert needed(lambda row: number(row[:2]), label=lambda row: number(row[3])) == ("a", "b")


def test_a_label_is_needed_that_cannot_be_made_up() -> None:
    def label(row: Any) -> Any:
        return tf.where(row[2] == ["red", "blue", "green"])[0, 0]

    assert needed(lambda row: number(row[:2]), label=label) == ("a", "b", "k")


@pytest.mark.parametrize("path", ["data.csv", "data.csv.gz"])
def test_a_label_is_known_though_the_data_is_sorted_or_one_class_rare(path: str) -> None:
    def features(row: Any) -> Any:
        return number(row[0])

    many = CHOICE.normal(size=9000).tolist()
    rare = [int(i == 8000) for i in range(9000)]
    assert needed(features, {"a": many, "y": rare}, path=path) == ("a",)
    assert needed(features, {"a": many, "y": sorted(map(str, range(9000)))}, path=path) == ("a",)


def test_a_column_of_one_value_counts_as_needed() -> None:
    assert needed(lambda row: number(row[0]), {**TABLE, "k": ["red"] * COUNT}) == ("a", "k")


def test_nothing_is_known_of_random_features_and_of_faulty_functions() -> None:
    assert needed(lambda row: number(row[0]) + tf.random.uniform([])) == ("a", "b", "k", "y")
    assert found(lambda ds, mode: ds.map(lambda row: number(row[2]))) == Needed()


def test_the_column_that_decides_which_records_stay_is_needed() -> None:
    def features(dataset: Any, mode: str) -> Any:
        return dataset.filter(lambda row: row[2] != "red").map(lambda row: number(row[0]))

    assert found(features).columns == ("a", "k")


def test_whole_rows_are_those_of_the_features_though_an_evaluation_shuffles() -> None:
    def features(dataset: Any, mode: str) -> Any:
        if mode == Mode.PREDICTION:
            return dataset.map(number)
        return dataset.map(lambda row: (number(row[1:]), number(row[0]))).shuffle(50)

    source = open_source(write({"y": TABLE["y"], "a": TABLE["a"], "b": TABLE["b"]}), {})
    seen = find_needed(bind_dataset(features), source, tf.TensorSpec([None, 2]))
    assert seen == Needed(columns=("a", "b"), row=("a", "b"))


def test_a_thousand_columns_take_few_runs() -> None:
    wide = {f"c{i}": CHOICE.integers(0, 100, 64).tolist() for i in range(1000)}
    traces = []

    def features(row: Any) -> Any:
        traces.append(row)
        return number(tf.concat([row[:500], row[503:]], 0))

    columns = needed(features, wide)
    assert set(wide) - set(columns) == {"c500", "c501", "c502"}
    assert len(traces) <= 3


def test_of_records_that_become_large_a_few_are_enough() -> None:
    sizes: list[int] = []

    def features(row: Any) -> Any:
        def draw(text: Any) -> Any:
            sizes.append(1)
            return np.full((512, 512), float(text), np.float32)

        return tf.ensure_shape(tf.numpy_function(draw, [row[0]], tf.float32), [512, 512])

    assert needed(features) == ("a",)
    assert len(sizes) < 500
