"""Training with workers gives what one process gives, and says what is wrong once."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jobs import ZOO, write_records
from safetensors.numpy import load_file

import elasticdl
from elasticdl.data.recordio import RecordWriter
from elasticdl.errors import DataError
from elasticdl.runtime.elastic.cluster import ray_cluster
from elasticdl.tracking.events import read_events

pytest.importorskip("ray")
pytestmark = pytest.mark.slow

RECORDS = 1_000


@pytest.fixture(scope="module", autouse=True)
def one_ray() -> Iterator[None]:
    with ray_cluster(None, num_cpus=3):
        yield


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("elastic")
    write_records(root / "train", RECORDS)
    write_records(root / "test", 200, seed=1)
    return root


def train(output: Path, data: Path, **flags: Any) -> elasticdl.Result:
    return elasticdl.train(
        model_zoo=str(ZOO),
        model_def="net.plain_model",
        training_data=str(data),
        output=str(output),
        seed=3,
        log_level="ERROR",
        **flags,
    )


def with_workers(output: Path, data: Path, number: int | str = 2, **flags: Any) -> elasticdl.Result:
    strategy = "AllreduceStrategy"
    return train(output, data, distribution_strategy=strategy, num_workers=number, **flags)


def test_a_global_batch_is_learned_from_as_one_process_does(tmp_path: Path, data: Path) -> None:
    flags = {
        "validation_data": str(data / "test"),
        "global_batch_size": 48,
        "num_minibatches_per_task": 5,
        "num_epochs": 2,
    }
    alone = train(tmp_path / "alone", data / "train", **flags)
    together = with_workers(tmp_path / "together", data / "train", **flags)
    assert together.steps == alone.steps == 2 * 24  # each of the four files gives six
    for name, values in alone.history.items():
        np.testing.assert_allclose(together.history[name], values, rtol=1e-4)
    ours, theirs = (
        load_file(run.output / "model" / "params.safetensors") for run in (together, alone)
    )
    for name, value in theirs.items():
        np.testing.assert_allclose(ours[name], value, rtol=1e-3, atol=1e-5)
    steps = [e for e in read_events(together.output / "events.jsonl") if e["event"] == "step"]
    assert all(set(e["by_worker"]) == {"worker-0", "worker-1"} for e in steps)
    assert sum(sum(e["by_worker"].values()) for e in steps) == 2 * RECORDS
    # The same weights give the same numbers, whoever evaluates.
    again = elasticdl.evaluate(
        trained_model=str(together.output), data=str(data / "test"), log_level="ERROR"
    )
    assert again.metrics == pytest.approx(together.metrics, rel=1e-6)


def test_what_user_code_raises_stops_the_job_once(tmp_path: Path, data: Path) -> None:
    with pytest.raises(ZeroDivisionError, match="the callback is broken") as caught:
        with_workers(
            tmp_path / "run", data / "train", callbacks="raises_at_step_20", minibatch_size=8
        )
    frames = traceback.extract_tb(caught.tb)
    assert frames[-1].filename == str(ZOO / "net.py"), "where the user can find it"
    events = read_events(tmp_path / "run" / "events.jsonl")
    assert sum(event["event"] == "worker_joined" for event in events) == 2
    assert events[-1]["event"] == "run_ended" and events[-1]["status"] == "failed"


def test_what_was_done_before_user_code_raised_is_told(tmp_path: Path, data: Path) -> None:
    with pytest.raises(ZeroDivisionError, match="the callback is broken"):
        with_workers(
            tmp_path / "run", data / "train", callbacks="raises_at_an_epochs_end", num_epochs=5
        )
    events = read_events(tmp_path / "run" / "events.jsonl")
    assert [e["epoch"] for e in events if e["event"] == "epoch_audit"] == [0, 1, 2]
    assert [e["epoch"] for e in events if e["event"] == "epoch"][:2] == [0, 1]


def test_each_epoch_is_told_when_its_leader_is_lost_at_the_end_of_it(
    tmp_path: Path, data: Path
) -> None:
    with_workers(
        tmp_path / "run", data / "train", callbacks="leader_dies_at_an_epochs_end", num_epochs=3
    )
    events = read_events(tmp_path / "run" / "events.jsonl")
    assert [e["worker"] for e in events if e["event"] == "worker_lost"] == ["worker-0"]
    for kind in ("epoch_audit", "epoch"):
        assert [e["epoch"] for e in events if e["event"] == kind] == [0, 1, 2]


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record 30 of one file cannot be parsed."""
    path = write_records(tmp_path_factory.mktemp("poisoned") / "train", 400, num_files=4)
    good = np.zeros(17, np.float32).tobytes()
    with (path / "part-2").open("wb") as file, RecordWriter(file) as writer:
        for number in range(100):
            writer.write(good[:8] if number == 30 else good)
    return path


def test_a_poisoned_record_stops_the_job_with_its_place(tmp_path: Path, poisoned: Path) -> None:
    with pytest.raises(DataError, match=r"record 30 of .*part-2") as caught:
        with_workers(tmp_path / "run", poisoned, minibatch_size=5, num_minibatches_per_task=4)
    assert "--max_bad_tasks=1" in str(caught.value)


def test_a_poisoned_task_is_left_out_where_that_is_allowed(tmp_path: Path, poisoned: Path) -> None:
    result = with_workers(
        tmp_path / "run",
        poisoned,
        3,
        minibatch_size=5,
        num_minibatches_per_task=4,
        max_bad_tasks=1,
    )
    assert result.status == "completed"
    events = read_events(tmp_path / "run" / "events.jsonl")
    bad = [event for event in events if event["event"] == "bad_task"]
    assert [(event["start"], event["end"], event["tries"]) for event in bad] == [(20, 40, 3)]
    (audit,) = [event for event in events if event["event"] == "epoch_audit"]
    assert (audit["records"], audit["examples"], audit["skipped"]) == (380, 380, 20)
