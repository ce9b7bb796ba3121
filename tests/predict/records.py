"""The records that the tests predict, in every format, with and without labels; and how they are read back."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import tensorflow as tf

from elasticdl.data.recordio import RecordWriter, index, read_chunk

COUNT = 150
FEATURES = np.random.default_rng(3).normal(size=(COUNT, 3)).astype(np.float32)
LABELS = (FEATURES @ [1.0, -2.0, 0.5]).astype(np.float32)


def example(i: int, labels: bool) -> bytes:
    feature = {"x": tf.train.Feature(float_list=tf.train.FloatList(value=FEATURES[i]))}
    if labels:
        feature["y"] = tf.train.Feature(float_list=tf.train.FloatList(value=[LABELS[i]]))
    return bytes(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())


def write_recordio(path: Path, labels: bool) -> None:
    with path.open("wb") as file, RecordWriter(file, max_chunk_bytes=700) as writer:
        for i in range(COUNT):
            writer.write(example(i, labels))


def write_tfrecord(path: Path, labels: bool) -> None:
    with tf.io.TFRecordWriter(str(path)) as writer:
        for i in range(COUNT):
            writer.write(example(i, labels))


def table(labels: bool) -> dict[str, Any]:
    return dict(zip("abc", FEATURES.T, strict=True)) | ({"y": LABELS} if labels else {})


def write_csv(path: Path, labels: bool, columns: str = "") -> None:
    named = table(labels)
    chosen = list(columns or named)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(chosen)
        writer.writerows(zip(*(map(float, named[name]) for name in chosen), strict=True))


def write_parquet(path: Path, labels: bool) -> None:
    pq.write_table(pa.table(table(labels)), path, row_group_size=64)


INPUTS: dict[str, Callable[[Path, bool], None]] = {
    "recordio": write_recordio,
    "tfrecord": write_tfrecord,
    "csv": write_csv,
    "parquet": write_parquet,
}


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a file or directory of predictions, as Python values."""
    if path.is_dir():
        return [row for part in sorted(path.glob("part-*")) for row in read(part)]
    if path.suffix == ".parquet":
        return list(pq.read_table(path).to_pylist())
    if path.suffix in (".jsonl", ".json"):
        return [json.loads(line) for line in path.read_text().splitlines()]
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            return list(csv.DictReader(file))
    if path.suffix == ".recordio":
        with path.open("rb") as file:
            return [_decoded(r) for chunk in index(file) for r in read_chunk(file, chunk)]
    return [_decoded(r.numpy()) for r in tf.data.TFRecordDataset(str(path))]


def _decoded(record: bytes) -> dict[str, Any]:
    features = tf.train.Example.FromString(record).features.feature
    return {
        name: list(getattr(feature, feature.WhichOneof("kind")).value)
        for name, feature in features.items()
    }


def values(rows: list[dict[str, Any]], name: str = "prediction") -> Any:
    """One output of all rows as an array, whatever the format made of it."""
    if name in rows[0]:
        return np.array([row[name] for row in rows], np.float32).reshape(len(rows), -1)
    names = sorted(key for key in rows[0] if key.startswith(f"{name}_"))
    return np.array([[row[key] for key in names] for row in rows], np.float32)
