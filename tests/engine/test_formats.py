"""One set of records in every format trains the same weights; faults in the files are named."""

from __future__ import annotations

import csv
import gzip
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf

import elasticdl
from elasticdl.data.recordio import RecordWriter
from elasticdl.errors import CorruptData, DataError, StorageFailure

COUNT = 200
RNG = np.random.default_rng(3)
FEATURES = RNG.normal(size=(COUNT, 3)).astype(np.float32)
LABELS = (FEATURES @ [1.0, -2.0, 0.5]).astype(np.float32)


def example(i: int) -> bytes:
    feature = {
        "x": tf.train.Feature(float_list=tf.train.FloatList(value=FEATURES[i])),
        "y": tf.train.Feature(float_list=tf.train.FloatList(value=[LABELS[i]])),
    }
    return bytes(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())


def parse_examples(dataset: Any, mode: Any) -> Any:
    description = {
        "x": tf.io.FixedLenFeature([3], tf.float32),
        "y": tf.io.FixedLenFeature([], tf.float32),
    }

    def parse(record: Any) -> Any:
        parsed = tf.io.parse_single_example(record, description)
        return parsed["x"], parsed["y"]

    return dataset.map(parse)


def parse_rows(dataset: Any, mode: Any) -> Any:
    def parse(row: Any) -> Any:
        numbers = tf.strings.to_number(row)
        return numbers[:3], numbers[3]

    return dataset.map(parse)


def parse_columns(dataset: Any, mode: Any) -> Any:
    return dataset.map(lambda row: (tf.stack([row["a"], row["b"], row["c"]]), row["y"]))


def write_recordio(path: Path, compression: str = "snappy") -> None:
    with path.open("wb") as file, RecordWriter(file, compression, max_chunk_bytes=700) as writer:
        for i in range(COUNT):
            writer.write(example(i))


def write_tfrecord(path: Path, compression: str = "") -> None:
    with tf.io.TFRecordWriter(str(path), compression) as writer:
        for i in range(COUNT):
            writer.write(example(i))


def rows() -> Iterator[list[str]]:
    for x, y in zip(FEATURES, LABELS, strict=True):
        yield [repr(float(y)), *(repr(float(v)) for v in x)]


def write_csv(path: Path) -> None:
    opener: Any = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(["y", "a", "b", "c"])
        writer.writerows(rows())


def write_parquet(path: Path) -> None:
    columns = {"y": LABELS} | dict(zip("abc", FEATURES.T, strict=True))
    pq.write_table(pa.table(columns), path, row_group_size=64)


class Reader(elasticdl.AbstractDataReader):
    """A reader of the user's own: four files that exist only in its mind."""

    def read_records(self, task: Any) -> Iterator[bytes]:
        offset = int(task.shard_name) * 50
        for i in range(task.start, task.end):
            yield example(offset + i)

    def create_shards(self) -> dict[str, tuple[int, int]]:
        return {str(number): (0, 50) for number in range(4)}


Format = tuple[str, Callable[[Path], None], Any]
FORMATS: dict[str, Format] = {
    "recordio": ("data.recordio", write_recordio, parse_examples),
    "recordio gzip": ("data.recordio", lambda p: write_recordio(p, "gzip"), parse_examples),
    "recordio plain": ("data.recordio", lambda p: write_recordio(p, "none"), parse_examples),
    "tfrecord": ("data.tfrecord", write_tfrecord, parse_examples),
    "tfrecord gzip": ("data.tfrecord.gz", lambda p: write_tfrecord(p, "GZIP"), parse_examples),
    "csv": ("data.csv", write_csv, parse_rows),
    "csv gzip": ("data.csv.gz", write_csv, parse_rows),
    "parquet": ("data.parquet", write_parquet, parse_columns),
}


def train(data: Any, dataset_fn: Any, **options: Any) -> elasticdl.Result:
    defaults: dict[str, Any] = {
        "loss": "mse",
        "optimizer": "sgd",
        "minibatch_size": 25,
        "num_minibatches_per_task": 2,
        "num_epochs": 2,
        "shuffle_tasks": False,
        "seed": 1,
    }
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, kernel_initializer="ones")])
    return elasticdl.train(model, data, dataset_fn=dataset_fn, **{**defaults, **options})


def weights(result: elasticdl.Result) -> Any:
    assert result.model_path is not None
    return keras.models.load_model(result.model_path / "model.keras", compile=False).get_weights()


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Any:
    output = tmp_path_factory.mktemp("arrays") / "run"
    return weights(train((FEATURES, LABELS), None, output=str(output)))


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_trains_the_same_weights(name: str, tmp_path: Path, expected: Any) -> None:
    file, write, parse = FORMATS[name]
    write(tmp_path / file)
    options: dict[str, Any] = {}
    if "csv" in name:
        options["data_reader_params"] = "columns=['a', 'b', 'c', 'y']; sep=','"
    if name == "parquet":
        options["minibatch_size"] = 200  # row groups of 64 would cut the minibatches elsewhere
        options["data_reader_params"] = {"columns": ["a", "b", "c", "y"]}
    result = train(str(tmp_path / file), parse, **options)
    if name == "parquet":
        assert result.steps == 2 * 4
        assert result.history["loss"][-1] < result.history["loss"][0]
        return
    for mine, theirs in zip(weights(result), expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


def test_a_custom_reader_trains_the_same_weights(expected: Any) -> None:
    result = train("anything", parse_examples, custom_data_reader=lambda origin, **_: Reader())
    for mine, theirs in zip(weights(result), expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


def test_a_custom_reader_that_raises_keeps_its_own_exception() -> None:
    class Broken(Reader):
        def read_records(self, task: Any) -> Iterator[bytes]:
            if task.shard_name == "2":
                raise LookupError("the third file is not in my mind")
            yield from super().read_records(task)

    with pytest.raises(LookupError, match="the third file") as caught:
        train("anything", parse_examples, custom_data_reader=lambda origin, **_: Broken())
    assert caught.traceback[-1].name == "read_records"


def test_a_corrupt_record_in_the_middle_of_training_is_named(tmp_path: Path) -> None:
    for name in ("first.recordio", "second.recordio"):
        write_recordio(tmp_path / name, "none")
    content = bytearray((tmp_path / "second.recordio").read_bytes())
    content[-10] ^= 0xFF
    (tmp_path / "second.recordio").write_bytes(content)
    with pytest.raises(CorruptData, match=r"second\.recordio.*chunk"):
        train(str(tmp_path / "*.recordio"), parse_examples, output=str(tmp_path / "run"))
    events = [json.loads(e) for e in (tmp_path / "run/events.jsonl").read_text().splitlines()]
    assert events[-1]["status"] == "failed"
    assert not (tmp_path / "run/model").exists()


def test_a_truncated_file_is_named_before_anything_is_written(tmp_path: Path) -> None:
    path = tmp_path / "data.tfrecord"
    write_tfrecord(path)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(CorruptData, match=r"data\.tfrecord"):
        train(str(path), parse_examples, output=str(tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_a_missing_column_names_the_nearest(tmp_path: Path) -> None:
    write_csv(tmp_path / "data.csv")
    with pytest.raises(DataError, match="'bb'"):
        train(
            str(tmp_path / "data.csv"),
            parse_rows,
            data_reader_params="columns=['a', 'bb', 'c', 'y']",
        )


@pytest.fixture
def small_disk(make_disk: Callable[[str], Path]) -> Path:
    return make_disk("300k")


def test_a_full_disk_is_said_and_the_checkpoint_before_is_intact(small_disk: Path) -> None:
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(10_000), keras.layers.Dense(1)])
    options: dict[str, Any] = {
        "loss": "mse",
        "optimizer": keras.optimizers.SGD(1e-6),
        "minibatch_size": 25,
        "seed": 1,
    }
    run = str(small_disk / "run")
    with pytest.raises(StorageFailure, match=r"No space left on device.*Free some space"):
        elasticdl.train(model, (FEATURES, LABELS), checkpoint_steps=2, output=run, **options)
    kept = sorted(p.name for p in (small_disk / "run/checkpoints").iterdir())
    assert kept == ["step-00000002"]
    from elasticdl.artifacts.checkpoint import Checkpoints

    assert Checkpoints(small_disk / "run/checkpoints").require_latest().step == 2
    assert not (small_disk / "run/model").exists()


def test_a_training_whose_model_finds_no_room_is_not_lost(
    small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    options: dict[str, Any] = {
        "model": lambda: keras.Sequential(
            [keras.Input((3,)), keras.layers.Dense(10_000), keras.layers.Dense(1)]
        ),
        "loss": "mse",
        "optimizer": keras.optimizers.SGD(1e-6),
        "minibatch_size": 25,
        "seed": 1,
    }
    data = (FEATURES, LABELS)
    run = str(small_disk / "run")
    with pytest.raises(StorageFailure, match="No space left") as caught:
        elasticdl.train(data=data, output=run, **options)
    (rescued,) = tmp_path.glob("elasticdl-rescued-*")
    assert f"--checkpoint_dir={rescued}" in caught.value.__notes__[0]
    subprocess.run(["mount", "-o", "remount,size=10m", str(small_disk)], check=True)
    elasticdl.train(data=data, output=run, resume=True, checkpoint_dir=str(rescued), **options)
    elasticdl.train(data=data, output="whole", **options)
    expected = Path("whole/model/params.safetensors").read_bytes()
    assert Path(run, "model/params.safetensors").read_bytes() == expected


def test_a_disk_that_is_too_full_for_the_curves_is_named(small_disk: Path) -> None:
    (small_disk / "filler").write_bytes(b"x" * (290 << 10))
    with pytest.raises(StorageFailure, match=r"Cannot write .*disk.*: No space left on device"):
        train((FEATURES, LABELS), None, output=str(small_disk / "run"))
    assert not (small_disk / "run/model").exists()
