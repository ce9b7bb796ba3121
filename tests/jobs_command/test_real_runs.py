"""`elasticdl jobs` beside a training that really runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from elasticdl.cli.main import main
from elasticdl.tracking.events import read_events
from processes import start_elasticdl

MODEL = """
import keras
import tensorflow as tf

def custom_model():
    return keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])

def dataset_fn(dataset, mode):
    def parse(row):
        numbers = tf.strings.to_number(row)
        return numbers[:2], numbers[2:]
    return dataset.map(parse)

def loss(labels, output):
    return tf.reduce_mean((labels - output) ** 2)

def optimizer():
    return keras.optimizers.SGD(0.01)
"""


@contextmanager
def training(*flags: str) -> Iterator[subprocess.Popen[Any]]:
    """One that would go on for hours; it has told of an epoch."""
    Path("line.py").write_text(MODEL)
    Path("line.csv").write_text("a,b,c\n" + "1,2,3\n" * 50)
    given = ["--model_zoo=.", "--model_def=line.custom_model", "--training_data=line.csv"]
    process = start_elasticdl("train", *given, "--num_epochs=1000000", *flags)
    assert process.stderr is not None
    try:
        assert any("epoch" in line for line in process.stderr)
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_run_is_listed_followed_and_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    with training() as process:
        assert main(["jobs", "list", "--json"]) == 0
        (listed,) = json.loads(capsys.readouterr().out)
        assert (listed["name"], listed["status"]) == ("line-1", "running")
        assert f"process {process.pid} on" in listed["process"]

        looking = start_elasticdl("jobs", "logs", "line", "--follow")
        assert looking.stdout is not None
        assert "train line begins" in looking.stdout.readline()
        looking.send_signal(signal.SIGINT)
        _, said = looking.communicate(timeout=60)
        assert looking.returncode == 130
        assert "The job goes on. Come back with: elasticdl jobs logs line --follow" in said

        assert main(["jobs", "stop", "line"]) == 0
        _, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
    assert "elasticdl train --resume --output=elasticdl_runs/line-1" in capsys.readouterr().out
    assert list(Path("elasticdl_runs/line-1/checkpoints").glob("step-*"))
    assert main(["jobs", "wait", "line"]) == 1
    assert "line-1: interrupted" in capsys.readouterr().out


def test_workers_have_their_processors_and_are_stopped_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("ray")
    elastic = ["--distribution_strategy=AllreduceStrategy", "--num_workers=2", "--output=mine"]
    with training(*elastic) as process:
        told = read_events(Path("mine/events.jsonl"))
        pids = [event["pid"] for event in told if event["event"] == "worker_joined"]
        assert len(pids) == 2
        if hasattr(os, "sched_getaffinity") and len(mine := os.sched_getaffinity(0)) % 2 == 0:
            one, other = (os.sched_getaffinity(pid) for pid in pids)
            assert one | other == mine and not one & other
        assert main(["jobs", "logs", "mine", "--worker=0", "--tail=1"]) == 0
        assert "worker-0 is process" in capsys.readouterr().out
        assert main(["jobs", "stop", "mine"]) == 0
        _, err = process.communicate(timeout=150)
        assert process.returncode == 130, err
    assert "mine: interrupted" in capsys.readouterr().out
    assert list(Path("mine/checkpoints").glob("step-*"))


def test_a_run_that_was_killed_is_said_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    with training("--output=mine") as process:
        process.kill()
        process.communicate(timeout=60)
    assert main(["jobs", "wait", "mine"]) == 1
    assert "mine: ended without a word" in capsys.readouterr().out
    assert main(["jobs", "scale", "mine", "--num_workers=2"]) == 2
    assert "has ended (ended without a word)" in capsys.readouterr().err
