"""Prediction speed against `keras.Model.predict` on a `tf.data.Dataset` of the same data, in minibatches of 64.

Both predict arrays in memory, in one process, by turns, and have all predictions at the end: as arrays, or for
the rows "to a file" in a Parquet file, which for Keras is written from the arrays. What is compared is the fastest of
several rounds, from the call to its return; for ours that is with all that happens there (leases, accounting, tracing).
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import report
import tensorflow as tf
from train import BATCH, CASES

import elasticdl

ROUNDS = 4
STEPS = {"iris DNN": 6400, "MNIST MLP": 600, "MNIST conv net": 300}
GOALS = {"iris DNN": 3.0}


def theirs(model: keras.Model, x: np.ndarray) -> np.ndarray:
    dataset = tf.data.Dataset.from_tensor_slices(x).batch(BATCH).prefetch(tf.data.AUTOTUNE)
    return model.predict(dataset, verbose=0)


def their_file(model: keras.Model, x: np.ndarray, path: Path) -> None:
    made = theirs(model, x)
    column = pa.FixedSizeListArray.from_arrays(pa.array(made.ravel()), made.shape[1])
    pq.write_table(pa.table({"prediction": column}), path)


def ours(model: keras.Model, x: np.ndarray, **options: object) -> object:
    result = elasticdl.predict(model, x, minibatch_size=BATCH, log_level="ERROR", **options)
    return result.predictions


def seconds(call: Callable[[], object]) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began


def measure(name: str, model: keras.Model, x: np.ndarray, directory: Path) -> None:
    path = directory / "out.parquet"
    calls = {
        "ours": lambda: ours(model, x),
        "theirs": lambda: theirs(model, x),
        "our file": lambda: ours(model, x, output=path, overwrite=True),
        "their file": lambda: their_file(model, x, directory / "theirs.parquet"),
    }
    np.testing.assert_allclose(ours(model, x), theirs(model, x), rtol=1e-4, atol=1e-5)
    best = dict.fromkeys(calls, 1e9)
    for _ in range(ROUNDS):
        for who, call in calls.items():
            best[who] = min(best[who], seconds(call))
    rate = {who: len(x) / took for who, took in best.items()}
    goal = GOALS.get(name, 1.0)
    report.add(f"{name}: predict", rate["ours"], rate["theirs"], "examples/s", goal)
    report.add(
        f"{name}: predict to a file", rate["our file"], rate["their file"], "examples/s", goal
    )


def main() -> None:
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as directory:
        for name, (build, shape, _, _) in CASES.items():
            x = rng.random((STEPS[name] * BATCH, *shape), dtype=np.float32)
            measure(name, build(), x, Path(directory))
    report.finish()


if __name__ == "__main__":
    main()
