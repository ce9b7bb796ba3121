"""What checkpoints cost: the stall and the memory for 300 MB of state, and the start of a resumed run.

The stall is the time for which the training loop waits, step to step, at a checkpoint; its peer is `model.save` of
the same compiled model. The start is from the command to the end of the first step, resumed against fresh.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import report

from elasticdl.quiet import load_tensorflow

load_tensorflow()

import keras  # noqa: E402
import numpy as np  # noqa: E402

import elasticdl  # noqa: E402
from elasticdl.engine.trainer import Trainer  # noqa: E402

WIDTH = 5000  # one square layer with Adam's two slots: 3 x 100 MB
CHECKPOINTS = 8
STARTS = 7
ZOO = Path(__file__).parent.parent / "model_zoo"


def big_model() -> keras.Model:
    return keras.Sequential(
        [keras.Input((WIDTH,)), keras.layers.Dense(WIDTH, use_bias=False), keras.layers.Dense(1)]
    )


class Resident(keras.callbacks.Callback):
    """Looks at this process's memory when every step is done."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes: list[int] = []

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        self.bytes.append(pages * os.sysconf("SC_PAGE_SIZE"))


def measure_stall() -> None:
    stalls: list[float] = []
    save = Trainer.save_checkpoint

    def timed(trainer: Trainer) -> None:
        started = time.perf_counter()
        save(trainer)
        stalls.append(time.perf_counter() - started)

    every = 20
    rows = np.zeros((every * CHECKPOINTS * 8, WIDTH), np.float32)
    memory = Resident()
    model = big_model()
    with tempfile.TemporaryDirectory() as directory:
        Trainer.save_checkpoint = timed
        try:
            elasticdl.train(
                model,
                (rows, np.zeros((len(rows), 1), np.float32)),
                loss="mse",
                optimizer=keras.optimizers.Adam(1e-4),
                minibatch_size=8,
                checkpoint_steps=every,
                keep_checkpoint_max=1,
                callbacks=[memory],
                output=f"{directory}/run",
            )
        finally:
            Trainer.save_checkpoint = save
        saves = []
        for number in range(CHECKPOINTS):
            started = time.perf_counter()
            model.save(f"{directory}/{number}.keras")
            saves.append(time.perf_counter() - started)
    state = 3 * 4 * WIDTH * WIDTH
    report.add(
        "checkpoint of 300 MB, stall: model.save",
        statistics.median(stalls),
        statistics.median(saves),
        "s",
        0.15,
        more_is_better=False,
    )
    report.add(
        "checkpoint of 300 MB, memory kept after: the state",
        max(0, memory.bytes[2 * every - 3] - memory.bytes[every - 3]) / 1e6,
        state / 1e6,
        "MB",
        0.1,
        more_is_better=False,
    )


def first_step_s(directory: str, *arguments: str) -> float:
    """From the command's start to the end of its first step."""
    events = Path(directory, "run", "events.jsonl")
    before = len(events.read_text().splitlines()) if events.exists() else 0
    started = time.time()
    command = [sys.executable, "-m", "elasticdl", "train", "--log_level=ERROR", *arguments]
    subprocess.run(command, cwd=directory, check=True, capture_output=True)
    told = [json.loads(line) for line in events.read_text().splitlines()[before:]]
    return next(e["time"] for e in told if e["event"] == "step") - started


def measure_start() -> None:
    fresh, resumed = [], []
    for _ in range(STARTS):
        with tempfile.TemporaryDirectory() as directory:
            begin = [
                *[f"--model_zoo={ZOO}", "--model_def=mnist.mnist_functional.custom_model"],
                *[f"--training_data={ZOO / 'data/digits/train'}", "--log_loss_steps=1"],
                *["--minibatch_size=16", "--checkpoint_steps=1", "--seed=1", "--output=run"],
            ]
            fresh.append(first_step_s(directory, *begin, "--max_step=1"))
            resumed.append(first_step_s(directory, "--resume", "--output=run", "--max_step=2"))
    report.add(
        "first step, resumed: fresh",
        statistics.median(resumed),
        statistics.median(fresh),
        "s",
        1.1,
        more_is_better=False,
    )


def main() -> None:
    measure_stall()
    measure_start()
    report.finish()


if __name__ == "__main__":
    main()
