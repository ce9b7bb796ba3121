"""Everything at a remote address: data, runs, checkpoints, trained models, predictions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest

import elasticdl
from elasticdl.artifacts.checkpoint import Checkpoints
from elasticdl.artifacts.run_directory import RunDirectory
from elasticdl.cli.main import main
from elasticdl.data.registry import open_source
from elasticdl.errors import DataError, MissingPackage, OutputExists, StorageFailure
from elasticdl.storage import children, new_directory, place, remove, write_file
from processes import start_elasticdl

FLAGS: dict[str, Any] = {
    "model_def": "linear.custom_model",
    "minibatch_size": 10,
    "num_minibatches_per_task": 2,
    "seed": 3,
}


def rows(count: int = 60) -> str:
    numbers = np.random.default_rng(0).normal(size=(count, 3))
    return "a,b,c\n" + "".join(f"{a:.3f},{b:.3f},{c:.3f}\n" for a, b, c in numbers)


@pytest.fixture(params=["s3", "gs", "memory"])
def remote(request: pytest.FixtureRequest) -> Iterator[str]:
    """An address with training data below it."""
    fixtures = {"s3": "bucket", "gs": "google_bucket"}
    if request.param in fixtures:
        address = request.getfixturevalue(fixtures[request.param])
    else:
        address = "memory://data-lake"
    fs, path = fsspec.core.url_to_fs(address)
    for part in range(2):
        fs.pipe_file(f"{path}/train/part-{part}.csv", rows().encode())
    yield address
    if request.param == "memory":
        fs.rm(path, recursive=True)


def read(address: str) -> bytes:
    fs, path = fsspec.core.url_to_fs(address)
    return bytes(fs.cat_file(path))


def test_a_run_at_a_remote_address_is_the_one_that_is_made_here(zoo: Path, remote: str) -> None:
    (zoo / "train").mkdir()
    for part in range(2):
        (zoo / "train" / f"part-{part}.csv").write_text(rows())
    options = {**FLAGS, "num_epochs": 2, "checkpoint_steps": 5}
    here = elasticdl.train(data="train/*.csv", validation_data="train", output="run", **options)
    there = elasticdl.train(
        data=f"{remote}/train/*.csv",
        validation_data=f"{remote}/train",
        output=f"{remote}/run",
        **options,
    )
    assert str(there.output) == f"{remote}/run"
    assert there.history == here.history
    for name in ("model/params.safetensors", "checkpoints/step-00000020/tensors.safetensors"):
        assert read(f"{remote}/run/{name}") == Path("run", name).read_bytes(), name
    kinds = [json.loads(line)["event"] for line in read(f"{remote}/run/events.jsonl").splitlines()]
    local = [
        json.loads(line)["event"] for line in Path("run/events.jsonl").read_text().splitlines()
    ]
    assert sorted(kinds) == sorted(local)
    fs, path = fsspec.core.url_to_fs(f"{remote}/run")
    assert fs.glob(f"{path}/tensorboard/train/events.out.tfevents*")
    assert not fs.exists(f"{path}/.lock")


def test_a_remote_model_predicts_and_evaluates_without_the_zoo(zoo: Path, remote: str) -> None:
    elasticdl.train(data=f"{remote}/train", output=f"{remote}/run", **FLAGS)
    (zoo / "linear.py").unlink()
    metrics = elasticdl.evaluate(data=f"{remote}/train", trained_model=f"{remote}/run").metrics
    assert set(metrics) == {"loss", "mae"}
    for output in ("predictions.csv", "predictions"):
        result = elasticdl.predict(
            data=f"{remote}/train", trained_model=f"{remote}/run", output=f"{remote}/{output}"
        )
        assert result.status == "completed"
    assert len(read(f"{remote}/predictions.csv").splitlines()) == 121
    with pytest.raises(OutputExists):
        elasticdl.predict(
            data=f"{remote}/train",
            trained_model=f"{remote}/run",
            output=f"{remote}/predictions.csv",
        )


def test_a_remote_run_is_resumed_and_keeps_its_events(zoo: Path, remote: str) -> None:
    whole = elasticdl.train(data=f"{remote}/train", num_epochs=2, output="whole", **FLAGS)
    cut = {"output": f"{remote}/cut", "checkpoint_steps": 3}
    elasticdl.train(data=f"{remote}/train", num_epochs=2, max_step=7, **cut, **FLAGS)
    resumed = elasticdl.train(resume=True, output=f"{remote}/cut")
    assert resumed.steps == whole.steps
    expected = Path("whole/model/params.safetensors").read_bytes()
    assert read(f"{remote}/cut/model/params.safetensors") == expected
    told = [json.loads(line) for line in read(f"{remote}/cut/events.jsonl").splitlines()]
    assert [e["step"] for e in told if e["event"] == "run_started"] == [0, 6]


def test_a_remote_checkpoint_without_its_manifest_is_skipped(zoo: Path, remote: str) -> None:
    output = f"{remote}/run"
    elasticdl.train(data=f"{remote}/train", output=output, checkpoint_steps=3, max_step=6, **FLAGS)
    remove(place(f"{output}/checkpoints/step-00000006/manifest.json"))
    elasticdl.train(resume=True, output=output)
    told = [json.loads(line) for line in read(f"{output}/events.jsonl").splitlines()]
    assert [e["step"] for e in told if e["event"] == "run_started"] == [0, 3]
    assert any("a file is missing" in e.get("message", "") for e in told)


def test_a_directory_that_fails_half_way_is_not_there(remote: str) -> None:
    final = place(f"{remote}/thing")
    with pytest.raises(RuntimeError), new_directory(final, last="last.txt") as aside:
        (aside / "first.txt").write_text("x")
        raise RuntimeError
    assert children(final) == []
    for text in ("one", "two"):
        with new_directory(final, last="last.txt") as aside:
            (aside / f"{text}.txt").write_text(text)
            (aside / "last.txt").write_text(text)
    assert [child.name for child in children(final)] == ["last.txt", "two.txt"]


def test_shards_are_prepared_into_a_remote_directory(zoo: Path, remote: str) -> None:
    (zoo / "linear.py").write_text(
        (zoo / "linear.py").read_text() + "def prepare_data_for_a_single_file(file, filename):\n"
        "    yield file.read()\n"
    )
    (zoo / "raw").mkdir()
    for number in range(5):
        (zoo / "raw" / str(number)).write_text(f"record {number}")
    flags = [
        "--model_def=linear.custom_model",
        "--input=raw",
        "--records_per_shard=2",
        "--num_workers=1",
    ]
    assert main(["data", "prepare", *flags, f"--output={remote}/shards"]) == 0
    source = open_source(f"{remote}/shards")
    assert [shard.num_records for shard in source.shards] == [2, 2, 1]
    remove(place(source.shards[1].name))
    with pytest.raises(DataError, match="2 of the 3 shards"):
        open_source(f"{remote}/shards")


def test_checkpoints_beyond_the_number_to_keep_are_removed(remote: str) -> None:
    store = Checkpoints(place(f"{remote}/checkpoints"), keep=2)
    for step in (1, 2, 3):
        store.save(step, {"x": np.full(3, step)}, {"step": step})
    assert [c.name for c in children(place(f"{remote}/checkpoints"))] == [
        "step-00000002",
        "step-00000003",
    ]
    assert store.require_latest().state == {"step": 3}


def test_two_runs_at_once_in_one_remote_directory_are_refused(remote: str) -> None:
    first, second = RunDirectory(f"{remote}/run"), RunDirectory(f"{remote}/run")
    with (
        first.held(resume=False, job={}),
        pytest.raises(OutputExists, match=f"process {os.getpid()} on"),
        second.held(resume=False, job={}),
    ):
        pass
    with second.held(resume=False, job={}):
        pass


def test_the_hold_of_a_process_that_died_is_no_hold(remote: str) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    directory = RunDirectory(f"{remote}/run")
    with directory.held(resume=False, job={}):
        holder = json.loads(read(f"{remote}/run/.lock"))
    write_file(
        place(f"{remote}/run/.lock"), json.dumps({**holder, "process": process.pid}).encode()
    )
    with directory.held(resume=False, job={}):
        pass


def test_a_training_that_is_killed_while_it_writes_to_a_bucket_is_resumed(
    zoo: Path, bucket: str
) -> None:
    (zoo / "data.csv").write_text(rows())
    flags = [f"--{name}={value}" for name, value in FLAGS.items()]
    flags += ["--data=data.csv", "--num_epochs=1000", "--checkpoint_steps=2"]
    process = start_elasticdl("train", *flags, f"--output={bucket}/run", cwd=zoo)
    try:
        assert process.stderr is not None
        while "epoch" not in (line := process.stderr.readline()):
            assert line, "it ended"
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.communicate()
    step = Checkpoints(place(f"{bucket}/run/checkpoints")).require_latest().step
    result = elasticdl.train(resume=True, output=f"{bucket}/run", max_step=step + 5)
    assert result.steps == step + 5


def test_a_bucket_that_is_not_there_is_named(zoo: Path, bucket: str) -> None:
    (zoo / "data.csv").write_text(rows())
    with pytest.raises(StorageFailure, match="s3://no-such-bucket/run"):
        elasticdl.train(data="data.csv", output="s3://no-such-bucket/run", **FLAGS)


def test_an_output_without_a_driver_names_the_package(zoo: Path) -> None:
    (zoo / "data.csv").write_text(rows())
    with pytest.raises(MissingPackage, match="pip install ossfs"):
        elasticdl.train(data="data.csv", output="oss://bucket/run", **FLAGS)
