"""An experiment trained by several workers: the numbers of one process, whoever is lost on the way."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elasticdl.errors import InvalidValue
from elasticdl.experiments.stages import Experiment
from elasticdl.experiments.workers import Workers
from elasticdl.runtime.elastic.cluster import ray_cluster
from elasticdl.runtime.result import Result
from elasticdl.tracking.events import read_events
from runs.project_files import MODELS, write_project, write_run

EXACT = MODELS.replace("            keras.layers.Dropout(0.3),\n", "").replace(
    "        return model",
    """        return model

    def get_callbacks(self):
        patience = 1 if self.config.epochs == 3 else 1000
        return [keras.callbacks.EarlyStopping("val_loss", patience=patience, min_delta=10)]

    def get_class_weight(self):
        return {0: 3.0, 1: 0.5, 2: 1.0}""",
)
"""Nothing random in a step; a callback that stops by the validation, and classes of different weight."""

STOPS = """

class Stops(Generators):
    def create_training_generator(self):
        def points():
            x, y = self._part("training")
            for i in range(40):
                yield x[i], y[i], 1
            raise KeyError("no 41st point")
        return points(), 53
"""


@pytest.fixture(scope="module")
def one_ray() -> Iterator[None]:
    pytest.importorskip("ray")
    with ray_cluster(None, num_cpus=2):
        yield


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, tensorflow: None) -> Path:
    from runs.project_files import DATASET

    sources = {"models": EXACT, "dataset": DATASET + STOPS}
    return write_project(tmp_path_factory.mktemp("workers") / "project", **sources)


def run(root: Path, name: str, stage: str = "run", **options: Any) -> Result:
    experiment = Experiment(root, name, mlflow=False, log_level="ERROR", **options)
    result: Result = getattr(experiment, stage)()
    return result


def assert_same(result: Result, expected: Result) -> None:
    assert result.history.keys() == expected.history.keys()
    for name, values in expected.history.items():
        np.testing.assert_allclose(result.history[name], values, rtol=1e-4, err_msg=name)
    assert result.metrics == pytest.approx(expected.metrics, rel=1e-4)
    assert result.test_metrics == pytest.approx(expected.test_metrics, rel=1e-4)


@pytest.mark.slow
@pytest.mark.usefixtures("one_ray")
@pytest.mark.parametrize("variant", ["generators", "datasets"])
def test_workers_give_the_numbers_of_one_process(root: Path, variant: str) -> None:
    for name in ("alone", "shared"):
        write_run(root, f"{variant}_{name}", variant)
    expected = run(root, f"{variant}_alone")
    result = run(root, f"{variant}_shared", num_workers=2)
    assert_same(result, expected)
    assert result.status == expected.status == "stopped"
    assert len(result.history["loss"]) == 2
    directory = root / "runs" / f"{variant}_shared"
    kinds = [event["event"] for event in read_events(directory / "events.jsonl")]
    assert kinds.count("worker_joined") == 2
    assert kinds.count("run_started") == kinds.count("run_ended") == 1
    assert not (directory / "job.json").exists()
    assert (directory / "exported" / "savedmodel").is_dir()


@pytest.mark.slow
@pytest.mark.usefixtures("one_ray")
def test_killed_replaced_stopped_and_gone_on_with_by_one_process(root: Path) -> None:
    write_run(root, "killed", epochs=100_000)
    directory = root / "runs" / "killed"
    fate = threading.Thread(target=kill_and_stop, args=(directory / "events.jsonl",))
    fate.start()
    stopped = run(root, "killed", "train", num_workers=2)
    fate.join()
    assert stopped.status == "interrupted"
    told = read_events(directory / "events.jsonl")
    assert [e["worker"] for e in told if e["event"] == "worker_joined"][2:] == ["worker-2"]
    audits = [e for e in told if e["event"] == "epoch_audit"]
    assert all(audit["examples"] == 56 and audit["applied_once"] for audit in audits)
    epochs = [f"epochs={len(audits) + 2}"]
    write_run(root, "calm", epochs=100_000)
    expected = run(root, "calm", "train", overrides=epochs)
    assert_same(run(root, "killed", "train", overrides=epochs), expected)


def kill_and_stop(events: Path) -> None:
    """SIGKILL a worker; when another has taken its place for a while, Ctrl-C."""
    pids = wait_for(events, "worker_joined", 2, "pid")
    wait_for(events, "epoch", 2, "epoch")
    os.kill(pids[1], signal.SIGKILL)
    wait_for(events, "worker_joined", 3, "pid")
    done = wait_for(events, "epoch", 2, "epoch")
    wait_for(events, "epoch", len(done) + 3, "epoch")
    os.kill(os.getpid(), signal.SIGINT)


def wait_for(events: Path, kind: str, number: int, field: str) -> list[int]:
    """That field of the events of a kind, as soon as there are so many."""
    while True:
        told = read_events(events) if events.exists() else []
        found = [event[field] for event in told if event["event"] == kind]
        if len(found) >= number or (told and told[-1]["event"] == "run_ended"):
            return found
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.usefixtures("one_ray")
def test_what_a_generator_raises_in_a_worker_is_what_the_user_sees(root: Path) -> None:
    write_run(root, "stops", data_loader_class="dataset.Stops")
    with pytest.raises(KeyError, match="no 41st point"):
        run(root, "stops", "train", num_workers=2)


def test_workers_are_asked_for_by_their_number_or_by_a_cluster() -> None:
    assert Workers.parse({}) is None
    assert Workers.parse({"num_workers": 1, "distribution_strategy": "Local"}) is None
    found = Workers.parse({"num_workers": "2:4"})
    assert found is not None
    assert found.options["num_workers"] == "2:4"
    assert found.options["distribution_strategy"] == "AllreduceStrategy"
    assert Workers.parse({"distribution_strategy": "AllreduceStrategy"}) is not None
    with pytest.raises(InvalidValue, match="'Local' with num_workers"):
        Workers.parse({"num_workers": 2, "distribution_strategy": "Local"})
    with pytest.raises(InvalidValue, match="no parameter servers"):
        Workers.parse({"distribution_strategy": "ParameterServerStrategy"})
