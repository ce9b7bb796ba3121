"""Reading RecordIO through a user's dataset function, against TFRecordDataset and a generator of records.

The records are `tf.train.Example`s of a 28x28 float image, 3 kB each, the same in every file; the user's
function parses and shuffles them. Everything ends in minibatches of 64 that are drained in Python.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import report

from elasticdl.quiet import load_tensorflow

load_tensorflow()

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from elasticdl.contract.mode import Mode  # noqa: E402
from elasticdl.data.ledger import Ledger  # noqa: E402
from elasticdl.data.pipeline import Pipeline  # noqa: E402
from elasticdl.data.recordio import RecordWriter  # noqa: E402
from elasticdl.data.registry import open_source  # noqa: E402

COUNT, BATCH, ROUNDS = 20_000, 64, 4


def make_records() -> list[bytes]:
    rng = np.random.default_rng(0)
    features = [
        tf.train.Features(
            feature={
                "image": tf.train.Feature(float_list=tf.train.FloatList(value=rng.random(784))),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[i % 10])),
            }
        )
        for i in range(500)
    ]
    distinct = [tf.train.Example(features=f).SerializeToString() for f in features]
    return [distinct[i % len(distinct)] for i in range(COUNT)]


def dataset_fn(dataset: tf.data.Dataset) -> tf.data.Dataset:
    description = {
        "image": tf.io.FixedLenFeature([28, 28], tf.float32),
        "label": tf.io.FixedLenFeature([1], tf.int64),
    }

    def parse(record: Any) -> Any:
        example = tf.io.parse_single_example(record, description)
        return {"image": example["image"] / 255.0}, example["label"]

    return dataset.map(parse).shuffle(1024)


def through_pipeline(path: Path) -> Callable[[], Iterable]:
    source = open_source(str(path), {})
    pipeline = Pipeline(
        source,
        lambda records, mode, metadata, size, *, ragged=False: dataset_fn(records).batch(size),
        Mode.TRAINING,
        BATCH,
        seed=1,
    )

    def batches() -> Iterable:
        ledger = Ledger(source.shards, records_per_lease=BATCH * 64, shuffle=True)
        while lease := ledger.lease():
            minibatches = pipeline.elements(lease)
            first = next(minibatches)
            pipeline.prepare(ledger.peek())
            yield first
            yield from minibatches
            ledger.complete(lease)

    return batches


def rate(batches: Callable[[], Iterable]) -> float:
    started = time.perf_counter()
    examples = sum(int(labels.shape[0]) for _, labels in batches())
    assert examples == COUNT
    return COUNT / (time.perf_counter() - started)


def main() -> None:
    records = make_records()
    with tempfile.TemporaryDirectory() as directory:
        recordio, tfrecord = Path(directory, "data.recordio"), Path(directory, "data.tfrecord")
        with recordio.open("wb") as file, RecordWriter(file, compression="none") as writer:
            for record in records:
                writer.write(record)
        with tf.io.TFRecordWriter(str(tfrecord)) as writer:
            for record in records:
                writer.write(record)

        def from_tfrecord() -> Iterable:
            return dataset_fn(tf.data.TFRecordDataset(str(tfrecord))).batch(BATCH).prefetch(2)

        def from_generator() -> Iterable:
            signature = tf.TensorSpec([], tf.string)
            dataset = tf.data.Dataset.from_generator(
                lambda: iter(records), output_signature=signature
            )
            return dataset_fn(dataset).batch(BATCH).prefetch(2)

        ways = {
            "ours": through_pipeline(recordio),
            "tfrecord": from_tfrecord,
            "generator": from_generator,
        }
        best = dict.fromkeys(ways, 0.0)
        for _ in range(ROUNDS):
            for name, way in ways.items():
                best[name] = max(best[name], rate(way))
    report.add("RecordIO: TFRecordDataset", best["ours"], best["tfrecord"], "records/s", 0.9)
    report.add("RecordIO: a generator", best["ours"], best["generator"], "records/s", 5.0)
    report.finish()


if __name__ == "__main__":
    main()
