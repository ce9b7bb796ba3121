"""Peak memory of training on 2 GB of RecordIO, against 20 MB: nothing is loaded whole."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import report

SMALL, LARGE = 20 << 20, 2 << 30
ALLOWED_MB = 300
RECORD = 3072


def write(directory: Path, size: int) -> None:
    from elasticdl.data.recordio import RecordWriter

    directory.mkdir()
    block = os.urandom(1 << 20)
    per_shard = 256 << 20
    for number, start in enumerate(range(0, size, per_shard)):
        path = directory / f"data-{number:05d}.recordio"
        with path.open("wb") as file, RecordWriter(file, compression="none") as writer:
            for i in range(min(per_shard, size - start) // RECORD):
                place = (i * 997) % (len(block) - RECORD)
                writer.write(block[place : place + RECORD])


def train(directory: str, output: str) -> None:
    """Runs in a process of its own and prints its peak memory in MB."""
    from elasticdl.quiet import load_tensorflow

    load_tensorflow()
    import keras
    import tensorflow as tf

    import elasticdl

    def dataset_fn(dataset: tf.data.Dataset, mode: str) -> tf.data.Dataset:
        def parse(record: tf.Tensor) -> tuple:
            data = tf.cast(
                tf.ensure_shape(tf.io.decode_raw(record, tf.uint8), [RECORD]), tf.float32
            )
            return data / 255.0, data[:1]

        return dataset.map(parse).shuffle(1024)

    model = keras.Sequential([keras.Input((RECORD,)), keras.layers.Dense(1)])
    elasticdl.train(
        model,
        directory,
        dataset_fn=dataset_fn,
        loss="mse",
        optimizer=keras.optimizers.SGD(1e-9),
        output=output,
    )
    print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


def peak(directory: Path) -> float:
    command = [sys.executable, __file__, str(directory), f"{directory}-run"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return float(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    with tempfile.TemporaryDirectory() as root:
        peaks = {}
        for name, size in (("small", SMALL), ("large", LARGE)):
            write(Path(root, name), size)
            peaks[name] = peak(Path(root, name))
    goal = 1 + ALLOWED_MB / peaks["small"]
    report.add(
        "memory for 2 GB: for 20 MB",
        peaks["large"],
        peaks["small"],
        "MB",
        goal,
        more_is_better=False,
    )
    report.finish()


if __name__ == "__main__":
    if len(sys.argv) == 3:
        train(*sys.argv[1:])
    else:
        main()
