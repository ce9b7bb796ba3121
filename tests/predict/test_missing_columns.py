"""Data that lacks a column: a label is not missed, a feature is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf

import elasticdl
from elasticdl.errors import DataError

from .conftest import HEAD, Trained
from .records import COUNT, FEATURES, table, write_csv

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


@pytest.fixture(scope="module")
def models(home: Path, trained: Trained) -> Any:
    (home / "zoo/whole.py").write_text(HEAD + WHOLE_ROWS)
    (home / "zoo/words.py").write_text(HEAD + WORDS)
    return {
        "slices": trained("rows.custom_model", "csv"),
        "whole": trained("whole.custom_model", "csv"),
        "words": trained("words.custom_model", "csv"),
    }


@pytest.mark.parametrize("name", ["slices", "whole", "words"])
def test_a_label_is_not_missed(models: Any, name: str) -> None:
    write_csv(Path("data.csv"), False)
    found = elasticdl.predict(trained_model=models[name], data="data.csv").predictions
    assert found.shape == (COUNT, 1)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("name", ["slices", "whole", "words"])
@pytest.mark.parametrize(("columns", "missing"), [("bcy", "a"), ("aby", "c"), ("acy", "b")])
def test_a_feature_is_missed_though_the_label_could_stand_in(
    models: Any, name: str, columns: str, missing: str
) -> None:
    write_csv(Path("data.csv"), True, columns)
    said = f"{', '.join(columns)}; the model was trained on a, b, c, y: {missing} is missing"
    with pytest.raises(DataError, match=said):
        elasticdl.predict(trained_model=models[name], data="data.csv", output="out.csv")
    assert not list(Path().glob("out*"))


def test_a_bad_value_is_named_though_the_label_is_missing(models: Any) -> None:
    write_csv(Path("data.csv"), False)
    lines = Path("data.csv").read_text().splitlines()
    Path("data.csv").write_text("\n".join([*lines[:3], "1.0,much,2.0", *lines[3:]]) + "\n")
    with pytest.raises(DataError, match=r"record 2 of .*much(.|\n)*Note: the data lacks y"):
        elasticdl.predict(trained_model=models["slices"], data="data.csv")


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
