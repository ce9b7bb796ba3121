"""Training speed against `keras.Model.fit`, plain and tuned, on the same model, data and batch size.

Both train on arrays in memory, in one process, by turns. What is compared is the fastest epoch of each after the
first, which compiles: for ours the time between two epochs' ends in events.jsonl, with all that happens there
(leases, accounting, events); for `fit` the time between two `on_epoch_end`. Name models to measure only those:
`python bench/train.py "MNIST conv net"`.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
import time

import report

from elasticdl.quiet import load_tensorflow

load_tensorflow()

import keras  # noqa: E402
import numpy as np  # noqa: E402

import elasticdl  # noqa: E402

L = keras.layers
BATCH = 64
ROUNDS, EPOCHS = 3, 4


def iris_dnn() -> keras.Model:
    return keras.Sequential(
        [keras.Input((4,)), L.Dense(10, "relu"), L.Dense(10, "relu"), L.Dense(3)]
    )


def mnist_mlp() -> keras.Model:
    return keras.Sequential([keras.Input((28, 28)), L.Flatten(), L.Dense(128, "relu"), L.Dense(10)])


def mnist_conv() -> keras.Model:
    return keras.Sequential(
        [
            keras.Input((28, 28)),
            L.Reshape((28, 28, 1)),
            L.Conv2D(32, 3, activation="relu"),
            L.Conv2D(64, 3, activation="relu"),
            L.BatchNormalization(),
            L.MaxPooling2D(),
            L.Dropout(0.25),
            L.Flatten(),
            L.Dense(10),
        ]
    )


CASES = {
    "iris DNN": (iris_dnn, (4,), 3, 1600),
    "MNIST MLP": (mnist_mlp, (28, 28), 10, 600),
    "MNIST conv net": (mnist_conv, (28, 28), 10, 24),
}


class EpochTimes(keras.callbacks.Callback):
    def __init__(self) -> None:
        super().__init__()
        self.ends: list[float] = []

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        self.ends.append(time.time())


def loss() -> keras.losses.Loss:
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def fit(model: keras.Model, data: tuple, steps_per_execution: int) -> list[float]:
    model.compile(keras.optimizers.SGD(0.1), loss(), steps_per_execution=steps_per_execution)
    times = EpochTimes()
    model.fit(*data, batch_size=BATCH, epochs=EPOCHS, shuffle=False, verbose=0, callbacks=[times])
    return times.ends


def ours(model: keras.Model, data: tuple) -> list[float]:
    with tempfile.TemporaryDirectory() as directory:
        result = elasticdl.train(
            model,
            data,
            loss=loss(),
            optimizer=keras.optimizers.SGD(0.1),
            minibatch_size=BATCH,
            num_epochs=EPOCHS,
            output=f"{directory}/run",
        )
        with open(result.output / "events.jsonl") as file:
            events = [json.loads(line) for line in file]
    return [e["time"] for e in events if e["event"] == "epoch"]


def fastest(ends: list[float]) -> float:
    return min(b - a for a, b in itertools.pairwise(ends))


def main() -> None:
    rng = np.random.default_rng(0)
    for name in sys.argv[1:] or CASES:
        build, shape, classes, steps = CASES[name]
        count = steps * BATCH
        data = (
            rng.random((count, *shape), dtype=np.float32),
            rng.integers(0, classes, count),
        )
        best = {"ours": 1e9, "plain": 1e9, "tuned": 1e9}
        for _ in range(ROUNDS):
            best["ours"] = min(best["ours"], fastest(ours(build(), data)))
            best["plain"] = min(best["plain"], fastest(fit(build(), data, 1)))
            best["tuned"] = min(best["tuned"], fastest(fit(build(), data, 20)))
        rate = {who: count / seconds for who, seconds in best.items()}
        report.add(f"{name}: tuned fit", rate["ours"], rate["tuned"], "examples/s", 0.97)
        report.add(f"{name}: plain fit", rate["ours"], rate["plain"], "examples/s")
    report.finish()


if __name__ == "__main__":
    main()
