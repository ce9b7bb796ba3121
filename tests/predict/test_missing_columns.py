"""Columns by name: a label is not missed, a feature is, and the order in the file is no matter."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf

import elasticdl
from elasticdl.artifacts.stored_model import find_trained_model
from elasticdl.errors import DataError

from .conftest import HEAD, Trained
from .records import COUNT, FEATURES, LABELS, table, write_csv

WHOLE_ROWS = """
def custom_model(): return network()

def dataset_fn(dataset, mode):
    dataset = dataset.map(tf.strings.to_number)
    return dataset if mode == Mode.PREDICTION else dataset.map(lambda row: (row[:3], row[3]))
"""
WORDS = """
def custom_model():
    inputs = {name: keras.Input((), name=name, dtype="string") for name in "abc"}
    ids = [keras.layers.Hashing(8)(inputs[name]) for name in "abc"]
    parts = [keras.layers.Embedding(8, 2)(one) for one in ids]
    return keras.Model(inputs, keras.layers.Dense(1)(keras.layers.Concatenate()(parts)))

def dataset_fn(dataset, mode):
    def parse(row):
        features = {name: row[i] for i, name in enumerate("abc")}
        return features if mode == Mode.PREDICTION else (features, tf.strings.to_number(row[3]))
    return dataset.map(parse)
"""


KINDS = """
def custom_model(): return network()

def dataset_fn(dataset, mode):
    def parse(row):
        x = tf.strings.to_number(row[:2])
        is_red = tf.reduce_any(tf.equal(row[2], ["red", "blue"]))
        x = tf.stack([x[0], tf.cast(x[1] > 0.5, tf.float32), tf.cast(is_red, tf.float32)])
        return x if mode == Mode.PREDICTION else (x, tf.strings.to_number(row[3]))
    return dataset.map(parse)
"""
LABEL_FIRST = WHOLE_ROWS.replace("(row[:3], row[3])", "(row[1:], row[0])")
FILTERS = """
def custom_model(): return network()

def dataset_fn(dataset, mode):
    dataset = dataset.map(tf.strings.to_number).filter(lambda row: row[0] > 0)
    return dataset.map(lambda row: (row[:3], row[3]))
"""


def write_kinds(path: str, columns: str = "xnky", *, header: bool = True, bad: str = "") -> str:
    kinds = ["red", "blue", "green"]
    named = {
        "x": FEATURES[:, 0].tolist(),
        "n": FEATURES[:, 1].tolist(),
        "k": [kinds[i % 3] for i in range(COUNT)],
        "y": LABELS.tolist(),
    }
    if bad:
        named["x"][120] = bad
    rows = [columns, *zip(*(named[name] for name in columns), strict=True)]
    Path(path).write_text("".join(",".join(map(str, row)) + "\n" for row in rows[not header :]))
    return path


@pytest.fixture(scope="module")
def models(home: Path, trained: Trained) -> Any:
    (home / "zoo/whole.py").write_text(HEAD + WHOLE_ROWS)
    (home / "zoo/words.py").write_text(HEAD + WORDS)
    (home / "zoo/first_label.py").write_text(HEAD + LABEL_FIRST)
    (home / "zoo/kinds.py").write_text(HEAD + KINDS)
    (home / "zoo/filters.py").write_text(HEAD + FILTERS)
    write_csv(home / "with/data.yabc.csv", True, "yabc")
    write_kinds(str(home / "with/data.kinds.csv"))
    return {
        "slices": trained("rows.custom_model", "csv"),
        "whole": trained("whole.custom_model", "csv"),
        "words": trained("words.custom_model", "csv"),
        "first_label": trained("first_label.custom_model", "yabc.csv"),
        "kinds": trained("kinds.custom_model", "kinds.csv"),
        "filters": trained("filters.custom_model", "csv"),
    }


def predict(model: Path, data: str, **flags: Any) -> Any:
    return elasticdl.predict(trained_model=model, data=data, log_level="ERROR", **flags).predictions


@pytest.mark.parametrize(
    ("name", "needed", "row"),
    [
        ("slices", "abc", ""),
        ("words", "abc", ""),
        ("whole", "abc", "abc"),
        ("first_label", "abc", "abc"),
        ("kinds", "xnk", ""),
    ],
)
def test_a_trained_model_knows_what_it_needs(models: Any, name: str, needed: str, row: str) -> None:
    message = find_trained_model(models[name]).message
    assert ("".join(message.needed_columns), "".join(message.row_columns)) == (needed, row)


@pytest.mark.parametrize("name", ["slices", "whole", "words", "first_label"])
def test_predictions_are_the_same_without_the_label_and_in_any_order(
    models: Any, name: str
) -> None:
    found = []
    for columns in ("abcy", "abc", "cba", "ycab"):
        write_csv(Path("data.csv"), True, columns)
        found.append(predict(models[name], "data.csv"))
    assert found[0].shape == (COUNT, 1)
    assert all(np.array_equal(found[0], other) for other in found)


@pytest.mark.parametrize("name", ["slices", "whole", "words", "first_label"])
@pytest.mark.parametrize(("columns", "missing"), [("bcy", "a"), ("aby", "c"), ("acy", "b")])
def test_a_feature_is_missed_though_the_label_could_stand_in(
    models: Any, name: str, columns: str, missing: str
) -> None:
    write_csv(Path("data.csv"), True, columns)
    said = f"{', '.join(columns)}; the model needs a, b, c: {missing} is missing"
    with pytest.raises(DataError, match=said):
        elasticdl.predict(trained_model=models[name], data="data.csv", output="out.csv")
    assert not list(Path().glob("out*"))


@pytest.mark.parametrize(("columns", "missing"), [("xny", "k"), ("xk", "n"), ("nky", "x")])
def test_a_feature_is_missed_whose_value_matters_rarely(
    models: Any, columns: str, missing: str
) -> None:
    data = write_kinds("data.csv", columns)
    with pytest.raises(DataError, match=f"needs x, n, k: {missing} is missing"):
        predict(models["kinds"], data)


def test_columns_that_are_named_restrict_what_is_read(models: Any) -> None:
    data = write_kinds("data.csv")
    whole = predict(models["kinds"], data)
    params = {"columns": ["k", "n", "x"]}
    assert np.array_equal(whole, predict(models["kinds"], data, data_reader_params=params))
    params = {"columns": ["n", "x", "y"]}
    with pytest.raises(DataError, match="n, x, y; the model needs x, n, k: k is missing"):
        predict(models["kinds"], data, data_reader_params=params)


def test_a_file_without_a_header_is_not_read_by_position(models: Any) -> None:
    data = write_kinds("data.csv", "xnk", header=False)
    with pytest.raises(DataError, match=r"x and n and k are missing.* may lack its header line"):
        predict(models["kinds"], data)


def test_a_bad_value_is_told_and_nothing_else_though_the_label_is_missing(models: Any) -> None:
    data = write_kinds("data.csv", "xnk", bad="oops")
    with pytest.raises(DataError, match=r"record 120 of .*oops") as caught:
        predict(models["kinds"], data, minibatch_size=10)
    assert "y" not in str(caught.value).split() and "lacks" not in str(caught.value)


def test_an_evaluation_finds_columns_by_name(models: Any) -> None:
    def loss(columns: str) -> float:
        data = write_kinds("data.csv", columns)
        result = elasticdl.evaluate(trained_model=models["kinds"], data=data, log_level="ERROR")
        return result.metrics["loss"]

    assert loss("xnky") == loss("ynkx")
    with pytest.raises(DataError, match="needs x, n, k, y: y is missing"):
        loss("xnk")


def test_a_validation_during_training_finds_columns_by_name(home: Path) -> None:
    def loss(columns: str) -> float:
        result = elasticdl.train(
            model_zoo=str(home / "zoo"), model_def="kinds.custom_model", data=write_kinds("t.csv"),
            validation_data=write_kinds("v.csv", columns), seed=1, overwrite=True, output="run",
            log_level="ERROR",
        )  # fmt: skip
        return result.metrics["loss"]

    (home / "zoo/kinds.py").write_text(HEAD + KINDS)
    assert loss("xnky") == loss("ynkx")


def test_records_and_predictions_are_told_apart_when_a_function_filters(models: Any) -> None:
    result = elasticdl.predict(
        trained_model=models["filters"], data=models["filters"].parents[1] / "without/data.csv",
        log_level="ERROR",
    )  # fmt: skip
    made = int((FEATURES[:, 0] > 0).sum())
    assert (result.records, result.num_predictions, len(result.predictions)) == (COUNT, made, made)
    assert ("records", f"{COUNT}, {made} predictions") in result.rows


def test_a_feature_is_missed_in_parquet_too(trained: Trained) -> None:
    columns = {name: values for name, values in table(True).items() if name != "b"}
    pq.write_table(pa.table(columns), "data.parquet")
    with pytest.raises(DataError, match="trained on a, b, c, y: b is missing"):
        elasticdl.predict(
            trained_model=trained("columns.custom_model", "parquet"), data="data.parquet"
        )


def test_a_record_without_the_feature_is_named(trained: Trained) -> None:
    with tf.io.TFRecordWriter("data.tfrecord") as writer:
        feature = {"z": tf.train.Feature(float_list=tf.train.FloatList(value=FEATURES[0]))}
        writer.write(
            tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()
        )
    with pytest.raises(DataError, match=r"record 0 of .*Feature: x .*is required"):
        elasticdl.predict(trained_model=trained("examples.custom_model"), data="data.tfrecord")


@pytest.mark.parametrize(
    ("model_def", "data", "params"),
    [
        ("odps_iris_dnn_model.odps_iris_dnn_model.custom_model", "iris.csv", {}),
        ("census.census_wide_deep.custom_model", "census/test.csv", {}),
        ("classifier.DNN", "wine/test.csv", {"num_classes": 3}),
        ("regressor.DNN", "diabetes/test.csv", {}),
    ],
)
def test_models_of_the_zoo_do_without_the_label(
    model_def: str, data: str, params: dict[str, Any]
) -> None:
    zoo = Path(__file__).parents[2] / "model_zoo"
    elasticdl.train(
        model_zoo=str(zoo), model_def=model_def, data=str(zoo / "data" / data), model_params=params,
        output="run", log_level="ERROR",
    )  # fmt: skip
    with (zoo / "data" / data).open(newline="") as file:
        rows = [row[:-1] for row in csv.reader(file)]
    with Path("unlabelled.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    found = predict(Path("run"), "unlabelled.csv")
    assert np.array_equal(found, predict(Path("run"), str(zoo / "data" / data)))
