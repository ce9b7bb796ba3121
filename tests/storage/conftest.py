"""A real S3-compatible server on loopback, and a model with its data."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import fsspec
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


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    log = tmp_path_factory.mktemp("s3") / "log"
    with log.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
    try:
        while "Running on" not in log.read_text():
            assert process.poll() is None, log.read_text()
            threading.Event().wait(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def bucket(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of an empty bucket: what a user's environment says of it is set."""
    for name, value in {
        "AWS_ENDPOINT_URL": s3_server,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    urllib.request.urlopen(
        urllib.request.Request(f"{s3_server}/moto-api/reset", method="POST")
    ).close()
    fsspec.filesystem("s3").clear_instance_cache()
    fs = fsspec.filesystem("s3")
    fs.mkdir("data-lake")
    yield "s3://data-lake"
    fs.clear_instance_cache()


@pytest.fixture
def zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "linear.py").write_text(MODEL)
    return tmp_path
