"""A model file for the tests of storage."""

from __future__ import annotations

from pathlib import Path

import pytest

MODEL = """
import keras
import tensorflow as tf

def custom_model(units=4):
    return keras.Sequential([keras.Input((2,)), keras.layers.Dense(units), keras.layers.Dense(1)])

def dataset_fn(dataset, mode):
    def parse(row):
        numbers = tf.strings.to_number(row)
        return numbers[:2] if mode == "prediction" else (numbers[:2], numbers[2])
    return dataset.map(parse)

def loss(labels, output):
    return keras.losses.mean_squared_error(labels, tf.squeeze(output, -1))

def optimizer():
    return keras.optimizers.Adam(0.1)

def eval_metrics_fn():
    return {"mae": keras.metrics.MeanAbsoluteError()}
"""


@pytest.fixture
def zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "linear.py").write_text(MODEL)
    return tmp_path
