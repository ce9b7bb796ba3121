"""A zoo of small models, one a form and format, and the models that were trained from it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import elasticdl

from .records import INPUTS

HEAD = """
import keras
import numpy as np
import tensorflow as tf
from elasticdl import ElasticDLSpec, Mode

def network():
    return keras.Sequential([keras.Input((3,)), keras.layers.Dense(2), keras.layers.Dense(1)])

def loss(labels, output):
    return tf.reduce_mean((tf.reshape(labels, [-1, 1]) - output) ** 2)

def optimizer():
    return keras.optimizers.SGD(0.01)
"""
FUNCTIONS = "def custom_model(): return network()\n"
EXAMPLES = """
def dataset_fn(dataset, mode):
    description = {"x": tf.io.FixedLenFeature([3], tf.float32)}
    if mode != Mode.PREDICTION:
        description["y"] = tf.io.FixedLenFeature([], tf.float32)
    def parse(record):
        parsed = tf.io.parse_single_example(record, description)
        return parsed["x"] if mode == Mode.PREDICTION else (parsed["x"], parsed["y"])
    return dataset.map(parse)
"""
ROWS = """
def dataset_fn(dataset, mode):
    def parse(row):
        x = tf.strings.to_number(row[:3])
        return x if mode == Mode.PREDICTION else (x, tf.strings.to_number(row[3]))
    return dataset.map(parse)
"""
COLUMNS = """
def dataset_fn(dataset, mode):
    def parse(row):
        x = tf.stack([row["a"], row["b"], row["c"]])
        return x if mode == Mode.PREDICTION else (x, row["y"])
    return dataset.map(parse)
"""
FIRST = """
model = network()

def feature_columns():
    return [tf.feature_column.numeric_column(key="x", dtype=tf.float32, shape=[3])]

def label_columns():
    return [tf.feature_column.numeric_column(key="y", dtype=tf.float32, shape=[1])]

def input_fn(records):
    x = np.stack([np.reshape(r["x"], (3,)) for r in records])
    return {"x": x}, np.array([r["y"] for r in records])
"""
SPEC = (
    EXAMPLES
    + """
class Line(ElasticDLSpec):
    def create_model(self): return network()
    def create_optimizer(self, lr=0.01): return keras.optimizers.SGD(lr)
    def create_loss(self, outputs=None, labels=None): return loss(labels, outputs)
    def create_dataset(self, dataset, mode): return dataset_fn(dataset, mode)
"""
)
KERAS_CLASS = (
    EXAMPLES
    + """
class Net(keras.Model):
    def __init__(self, units=2):
        super().__init__()
        self.hidden = keras.layers.Dense(units)
        self.last = keras.layers.Dense(1)
    def call(self, inputs, training=False):
        return self.last(self.hidden(inputs))
    @staticmethod
    def default_input(dataset, mode): return dataset_fn(dataset, mode)
    @staticmethod
    def default_loss(labels, output): return loss(labels, output)
    def default_optimizer(self): return keras.optimizers.SGD(0.01)
"""
)
IGNORES_THE_MODE = (
    EXAMPLES.replace("mode != Mode.PREDICTION", "True")
    .replace('parsed["x"] if mode == Mode.PREDICTION else ', "")
    .replace("dataset.map(parse)", "dataset.map(parse).shuffle(100)")
)

ZOO = {
    "examples": FUNCTIONS + EXAMPLES,
    "rows": FUNCTIONS + ROWS,
    "columns": FUNCTIONS + COLUMNS,
    "first": FIRST,
    "spec": SPEC,
    "subclass": KERAS_CLASS,
    "ignores": FUNCTIONS + IGNORES_THE_MODE,
}
MODELS = {
    "recordio": "examples.custom_model",
    "tfrecord": "examples.custom_model",
    "csv": "rows.custom_model",
    "parquet": "columns.custom_model",
}

Trained = Callable[..., Path]


@pytest.fixture(autouse=True)
def _tensorflow(tensorflow: None) -> None:
    """Every test of prediction needs TensorFlow."""


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The zoo and the data of all formats, `with/` labels and `without/`."""
    root = tmp_path_factory.mktemp("predict")
    (root / "zoo").mkdir()
    for name, text in ZOO.items():
        (root / "zoo" / f"{name}.py").write_text(HEAD + text)
    for directory in ("with", "without"):
        (root / directory).mkdir()
        for suffix, write in INPUTS.items():
            write(root / directory / f"data.{suffix}", directory == "with")
    return root


@pytest.fixture(scope="session")
def trained(home: Path, tensorflow: None) -> Trained:
    """`trained(model_def, format)`: a trained model without its zoo, made when it is first asked for."""

    def train(model_def: str, data: str = "recordio") -> Path:
        output = home / "trained" / f"{model_def}-{data}"
        if not output.exists():
            with _inside(home):
                elasticdl.train(
                    model_zoo="zoo", model_def=model_def, data=f"with/data.{data}",
                    minibatch_size=50, seed=1, output=str(output), log_level="ERROR",
                )  # fmt: skip
        return output

    return train


@contextlib.contextmanager
def _inside(directory: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(directory)
    try:
        yield
    finally:
        os.chdir(before)
