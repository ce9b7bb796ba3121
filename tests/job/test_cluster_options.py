"""What may be said of workers and of a cluster, and what becomes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import elasticdl
from elasticdl.api import as_begun
from elasticdl.errors import InvalidValue
from elasticdl.job.config import JobConfig
from elasticdl.job.parse import parse_resources


def train(**values: Any) -> JobConfig:
    return JobConfig.parse("train", values)


@pytest.mark.parametrize(
    ("given", "kept", "workers"),
    [
        (3, "3", (3, 3)),
        ("3", "3", (3, 3)),
        ("2:4", "2:4", (2, 4)),
        (" 2 : 4 ", "2:4", (2, 4)),
        ("2:2", "2", (2, 2)),
        (None, None, (1, 1)),
    ],
)
def test_workers_are_a_number_or_a_range(
    given: Any, kept: str | None, workers: tuple[int, int]
) -> None:
    config = train(num_workers=given)
    assert config.num_workers == kept
    assert config.workers == workers
    assert JobConfig.from_json(config.to_json()).workers == workers


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (0, "Invalid num_workers 0: the fewest workers are 1."),
        ("-2", "Invalid num_workers '-2': the fewest workers are 1."),
        ("0:2", "Invalid num_workers '0:2': the fewest workers are 1."),
        ("4:2", "Invalid num_workers '4:2': the minimum 4 is above the maximum 2. Give MIN:MAX"),
        ("a", "Invalid num_workers 'a': it is not a number of workers. Give a number, for"),
        ("1:2:3", "it is not a number of workers"),
        ("2:", "it is not a number of workers"),
        ("", "it is not a number of workers"),
        (2.5, "it is not a number of workers"),
        (True, "it is not a number of workers"),
    ],
)
def test_workers_are_refused_when_there_is_no_such_number(given: Any, said: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        train(num_workers=given)
    assert said in str(refused.value)


def test_a_global_batch_is_the_minibatch_of_all_together() -> None:
    config = train(global_batch_size="128")
    assert (config.global_batch_size, config.minibatch_size) == (128, 128)
    assert "minibatch_size" not in config.given
    again = JobConfig.from_json(config.to_json())
    assert (again.global_batch_size, again.minibatch_size) == (128, 128)


def test_a_global_batch_is_refused_when_a_minibatch_is_given_too() -> None:
    with pytest.raises(InvalidValue, match="minibatch_size 64 and global_batch_size 128 are both"):
        train(global_batch_size=128, minibatch_size=64)


def test_only_what_was_given_is_said_to_be_idle() -> None:
    assert train().idle_cluster_options == []
    assert train(global_batch_size=8).idle_cluster_options == []
    idle = train(ray_address="auto", worker_timeout=5, max_bad_tasks=1, num_workers=2)
    assert idle.idle_cluster_options == [
        "num_workers",
        "ray_address",
        "worker_timeout",
        "max_bad_tasks",
    ]
    assert (
        train(num_workers=2, distribution_strategy="AllreduceStrategy").idle_cluster_options == []
    )


@pytest.mark.parametrize(
    ("began", "is_idle"), [("Local", True), ("AllreduceStrategy", False), (None, True)]
)
def test_what_is_idle_in_a_resumed_run_is_known_by_how_it_was_begun(
    tmp_path: Path, began: str | None, is_idle: bool
) -> None:
    job = {"command": "train", **({"distribution_strategy": began} if began else {})}
    (tmp_path / "job.json").write_text(json.dumps(job))
    resumed = as_begun(train(resume=True, output=str(tmp_path), num_workers="2:3"))
    assert resumed.idle_cluster_options == (["num_workers"] if is_idle else [])


def test_an_address_of_no_form_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="Invalid ray_address 'nonsense'"):
        elasticdl.train(
            model_def="net.model",
            training_data="nowhere",
            output=str(tmp_path / "run"),
            distribution_strategy="AllreduceStrategy",
            ray_address="nonsense",
        )
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("worker_timeout", 0.5),
        ("worker_timeout", "nan"),
        ("max_bad_tasks", -1),
        ("global_batch_size", 0),
    ],
)
def test_numbers_are_refused_when_they_make_no_sense(name: str, value: Any) -> None:
    with pytest.raises(InvalidValue, match=f"Invalid {name} .*: the smallest that makes sense"):
        train(**{name: value})


def test_parameter_servers_are_refused_with_what_to_use_instead() -> None:
    config = train(distribution_strategy="ParameterServerStrategy", grads_to_wait=2, use_async=True)
    with pytest.raises(InvalidValue, match="Use AllreduceStrategy"):
        config.refuse_parameter_servers()
    train(distribution_strategy="AllreduceStrategy").refuse_parameter_servers()
    train().refuse_parameter_servers()


@pytest.mark.parametrize(
    ("text", "resources"),
    [
        ("cpu=1,memory=4096Mi,gpu=1", {"cpu": 1, "memory": 4096 * 2**20, "gpu": 1}),
        ("cpu=500m", {"cpu": 0.5}),
        (" cpu = 1.5 , memory=2G,", {"cpu": 1.5, "memory": 2e9}),
        ("memory=1Ki", {"memory": 1024}),
        ("memory=1K", {"memory": 1000}),
        ("memory=1.5Gi", {"memory": 1.5 * 2**30}),
        ("memory=100", {"memory": 100}),
        ("", {}),
    ],
)
def test_resources_are_read_with_their_units(text: str, resources: dict[str, float]) -> None:
    assert parse_resources("worker_resource_request", text) == pytest.approx(resources)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cpus=1", "unknown resource 'cpus'. Did you mean 'cpu'?"),
        ("cpu", "'cpu' is not of the form name=amount. Give for example cpu=1,memory=4096Mi."),
        ("cpu=1,cpu=2", "'cpu' is given twice."),
        ("cpu=many", "cpu='many' is not an amount. Give 1 or 500m."),
        ("memory=4MB", "memory='4MB' is not an amount. Give 4096Mi or 4Gi."),
        ("memory=-1Gi", "memory='-1Gi' is not an amount."),
        ("gpu=500m", "gpu='500m' is not an amount. Give 1."),
        ("gpu=", "gpu='' is not an amount."),
    ],
)
def test_resources_are_refused_when_they_cannot_be_read(text: str, said: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        parse_resources("worker_resource_request", text)
    assert said in str(refused.value)
