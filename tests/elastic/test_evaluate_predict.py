"""Evaluating and predicting with workers: the numbers of one process, whoever is lost on the way."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

import elasticdl
from elasticdl.cli.main import main
from elasticdl.data.recordio import RecordWriter
from elasticdl.runtime.elastic.cluster import ray_cluster

pytest.importorskip("ray")
pytestmark = pytest.mark.slow

MODEL = '''
import os, signal
from pathlib import Path
import keras, psutil
import tensorflow as tf

class Unheard(Exception):
    """Known nowhere but here."""

def custom_model():
    return keras.Sequential([keras.Input((3,)), keras.layers.Dense(4), keras.layers.Dense(2)])

def loss(labels, outputs):
    return tf.reduce_mean((labels - outputs) ** 2)

def optimizer():
    return keras.optimizers.SGD(0.01)

def dataset_fn(dataset, mode):
    def parse(record):
        values = tf.io.decode_raw(record, tf.float32)
        tf.debugging.assert_equal(tf.size(values), 4, "torn")
        return values[:3] if mode == "prediction" else (values[:3], values[3:])
    return dataset.map(parse)

def eval_metrics_fn():
    return {"mse": keras.metrics.MeanSquaredError(), "far": lambda labels, outputs: labels - outputs}

def taken(name):
    """Whether this process is the one that finds the file."""
    try:
        os.rename(name, f"{name}.taken")
    except FileNotFoundError:
        return False
    return True

class PredictionOutputsProcessor:
    def process(self, predictions, worker_id):
        with open(f"seen-{worker_id}", "a") as file:
            file.write(f"{len(predictions)}\\n")
        if taken("kill-me"):
            os.kill(os.getpid(), signal.SIGKILL)
        if taken("kill-dispatcher"):
            for process in psutil.Process(os.getppid()).children():
                if "Dispatcher" in process.cmdline()[0]:
                    process.kill()
        if taken("raise"):
            raise Unheard(f"{len(predictions)} is a number")
'''
COUNT = 230
TORN = 309
"""After those that are looked at first, which end it at once."""
WITH = {"distribution_strategy": "AllreduceStrategy"}
OPTIONS = {"minibatch_size": 10, "num_minibatches_per_task": 2, "log_level": "ERROR"}


@pytest.fixture(scope="module", autouse=True)
def _one_ray() -> Iterator[None]:
    with ray_cluster(None, num_cpus=8):
        yield


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A zoo, records, the same with a torn one, and what was trained on them."""
    home = tmp_path_factory.mktemp("home")
    (home / "zoo").mkdir()
    (home / "zoo" / "line.py").write_text(MODEL)
    for name, count in (("whole", COUNT), ("torn", 320)):
        values = np.random.default_rng(3).normal(size=(count, 4)).astype(np.float32)
        with (home / name).open("wb") as file, RecordWriter(file) as writer:
            for number, row in enumerate(values):
                writer.write(row.tobytes()[: 12 if number == TORN else 16])
    zoo = {"model_zoo": str(home / "zoo"), "model_def": "line.custom_model"}
    data, output = str(home / "whole"), str(home / "trained")
    elasticdl.train(data=data, output=output, **zoo, **OPTIONS)
    return home


def predict(home: Path, output: str | None, **options: Any) -> elasticdl.Result:
    return elasticdl.predict(
        trained_model=str(home / "trained"),
        data=str(home / "whole"),
        output=output,
        **OPTIONS,
        **options,
    )


def seen() -> int:
    """How many predictions processors were given here."""
    return sum(int(n) for file in Path().glob("seen-*") for n in file.read_text().split())


def test_an_evaluation_is_that_of_one_process(home: Path) -> None:
    given = {"trained_model": str(home / "trained"), "data": str(home / "whole"), **OPTIONS}
    alone = elasticdl.evaluate(**given)
    shared = elasticdl.evaluate(**given, **WITH, num_workers=2)
    assert shared.metrics == pytest.approx(alone.metrics, rel=1e-6)
    assert shared.metrics["loss"] == alone.metrics["loss"]
    assert shared.status == "completed"


def test_objects_are_evaluated_and_predicted_in_memory() -> None:
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    x = np.random.default_rng(0).normal(size=(95, 3)).astype(np.float32)
    options: dict[str, Any] = {"minibatch_size": 4, "log_level": "ERROR"}
    alone = elasticdl.predict(model, x, **options)
    shared = elasticdl.predict(model, x, **options, **WITH, num_workers="1:2")
    assert np.array_equal(shared.predictions, alone.predictions)
    assert (shared.records, shared.num_predictions) == (95, 95)


@pytest.mark.parametrize("hurt", ["kill-me", "kill-dispatcher"])
def test_a_prediction_is_that_of_one_process_whoever_is_lost(home: Path, hurt: str) -> None:
    predict(home, "alone.parquet")
    for file in Path().glob("seen-*"):
        file.unlink()
    Path(hurt).touch()
    shared = predict(home, "shared.parquet", **WITH, num_workers=2)
    assert Path(f"{hurt}.taken").exists()
    assert Path("shared.parquet").read_bytes() == Path("alone.parquet").read_bytes()
    assert (shared.status, shared.records) == ("completed", COUNT)
    assert (
        COUNT <= seen() <= COUNT + 2 * 20
    )  # what was lost with a worker is done again, and no more
    assert not Path("shared.parquet.parts").exists()


def test_more_workers_than_leases_are_no_harm(home: Path) -> None:
    options = {**WITH, "num_workers": "1:3"}
    predict(home, "first", output_format="csv")
    shutil.copytree("first", "second", ignore=shutil.ignore_patterns("*part-00003*"))
    made = predict(home, "second", resume=True, **options)
    assert made.status == "completed"
    for part in Path("first").glob("part-*"):
        assert Path("second", part.name).read_bytes() == part.read_bytes()


def flags(home: Path, data: str) -> list[str]:
    return [
        f"--trained_model={home / 'trained'}",
        f"--model_zoo={home / 'zoo'}",
        "--model_def=line.custom_model",
        f"--data={home / data}",
        "--minibatch_size=10",
        "--num_minibatches_per_task=2",
        "--distribution_strategy=AllreduceStrategy",
        "--num_workers=2",
    ]


def test_an_error_of_the_users_is_shown_once_as_theirs(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("raise").touch()
    code = main(["predict", "--output=out.csv", *flags(home, "whole")])
    said = capsys.readouterr().err
    assert code == 1
    assert said.count("Traceback") == 1
    assert f'File "{home / "zoo" / "line.py"}", line' in said
    assert "Unheard: 10 is a number" in said
    assert "elasticdl/" not in said
    assert "ray" not in said.lower().replace("array", "").replace("starting ray", "")


def test_a_task_that_nobody_can_read_ends_it_with_its_place(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["evaluate", "--max_bad_tasks=1", *flags(home, "torn")])
    said = capsys.readouterr().err
    assert code == 2
    assert f"record {TORN} of {home / 'torn'}" in said
    assert f"[300, 320) of {home / 'torn'} failed on 2 different workers" in said
    assert "--max_bad_tasks has no effect here" in said
