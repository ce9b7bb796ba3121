"""What a user may ask of a cluster, and what becomes of slips."""

from __future__ import annotations

from typing import Any

import pytest

from elasticdl.errors import InvalidValue
from elasticdl.job.config import JobConfig
from elasticdl.runtime.kubernetes.request import ClusterRequest, Volume


def asked(**values: Any) -> ClusterRequest:
    return ClusterRequest.of(JobConfig.parse("train", {"cluster": "kubernetes", **values}))


def test_pods_have_a_processor_and_4_gb_when_nothing_is_said() -> None:
    request = asked()
    assert request.context is None and request.namespace is None
    assert request.workers == (1, 1)
    for pods in (request.master, request.worker):
        assert pods.requests == pods.limits == {"cpu": "1", "memory": "4096Mi"}


def test_a_context_may_be_named() -> None:
    assert asked(cluster="kubernetes:arn:aws:eks:eu:1:cluster/a").context == (
        "arn:aws:eks:eu:1:cluster/a"
    )


@pytest.mark.parametrize(
    ("given", "quantities"),
    [
        ("cpu=2", {"cpu": "2", "memory": "4096Mi"}),
        ("cpu=500m,memory=2Gi", {"cpu": "500m", "memory": "2048Mi"}),
        ("memory=1G", {"cpu": "1", "memory": "1000000000"}),
        ("cpu=1.0005", {"cpu": "1001m", "memory": "4096Mi"}),
        ("gpu=2", {"cpu": "1", "memory": "4096Mi", "nvidia.com/gpu": "2"}),
        ("disk=10Gi", {"cpu": "1", "memory": "4096Mi", "ephemeral-storage": "10240Mi"}),
    ],
)
def test_resources_become_quantities_and_are_limits_too(
    given: str, quantities: dict[str, str]
) -> None:
    worker = asked(worker_resource_request=given).worker
    assert worker.requests == worker.limits == quantities


def test_a_limit_may_be_above_the_request() -> None:
    worker = asked(worker_resource_request="cpu=1", worker_resource_limit="memory=8Gi").worker
    assert worker.requests["memory"] == "4096Mi"
    assert worker.limits == {"cpu": "1", "memory": "8192Mi"}


def test_volumes_are_claims_or_paths_of_nodes() -> None:
    volumes = asked(
        volume="claim_name=data,mount_path=/data; host_path=/mnt/fast,mount_path=/fast"
    ).volumes
    assert volumes == (Volume("/data", claim="data"), Volume("/fast", host_path="/mnt/fast"))


@pytest.mark.parametrize(
    ("path", "is_seen"),
    [
        ("/data", True),
        ("/data/run-1", True),
        ("/database", False),
        ("data/run-1", False),
        ("s3://bucket/run-1", True),
        ("/data/../etc", False),
        ("file:///tmp/run", False),
        ("memory://run", False),
        ("simplecache::memory://run", False),
        ("://", False),
    ],
)
def test_pods_see_addresses_and_volumes(path: str, is_seen: bool) -> None:
    assert asked(volume="claim_name=d,mount_path=/data").sees(path) is is_seen


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"cluster": "kubernets"}, "Invalid cluster 'kubernets': give kubernetes"),
        ({"cluster": "kubernetes:"}, "Invalid cluster 'kubernetes:'"),
        ({"cluster": ""}, "Invalid cluster ''"),
        ({"volume": "claim_name=data"}, "has no mount_path, where pods find it. Give for example"),
        ({"volume": "mount_path=/data"}, "needs one of claim_name and host_path"),
        ({"volume": "claim_name=d,mount_path=data"}, "'data' is not an absolute path below /"),
        ({"volume": "claim_name=d,mount_path=/"}, "'/' is not an absolute path below /"),
        ({"volume": "claim=d,mount_path=/d"}, "'claim'. Did you mean 'claim_name'?"),
        ({"volume": "claim_name=,mount_path=/d"}, "'claim_name=' is not of the form name=value"),
        (
            {"volume": "claim_name=a,mount_path=/d,claim_name=b,mount_path=/e"},
            "'claim_name' is given twice. Put a semicolon between two volumes.",
        ),
        (
            {"volume": "claim_name=a,mount_path=/d;claim_name=b,mount_path=/d/"},
            "two are mounted at /d.",
        ),
        ({"worker_resource_request": "cpu=a"}, "cpu='a' is not an amount. Give 1 or 500m."),
        ({"worker_resource_request": "ram=1Gi"}, "unknown resource 'ram'"),
        ({"worker_resource_request": "cpu"}, "'cpu' is not of the form name=amount"),
        ({"worker_resource_request": "cpu=0"}, "cpu is below 1m"),
        ({"worker_resource_request": "cpu=0.0001"}, "cpu is below 1m"),
        ({"worker_resource_request": "memory=4096"}, "memory is 4096 bytes, in which nothing runs"),
        ({"num_workers": 99_999_999_999}, "are a slip of the keyboard"),
        ({"namespace": "a" * 64}, "Invalid namespace"),
        ({"volume": "claim_name=Data_X,mount_path=/d"}, "'Data_X' is not a name of a claim"),
        ({"volume": "claim_name=d,mount_path=/model_zoo"}, "pods cannot have it at '/model_zoo'"),
        ({"volume": "claim_name=d,mount_path=/d:ro"}, "pods cannot have it at '/d:ro'"),
        ({"volume": "host_path=rel,mount_path=/d"}, "'rel' is not an absolute path"),
        ({"image_name": ""}, "Invalid image_name ''"),
        ({"image_name": "a b"}, "Invalid image_name 'a b'"),
        ({"image_name": "-x"}, "Invalid image_name '-x'"),
        ({"image_name": "a", "image_base": "b"}, "image_base and image_name are both given"),
        ({"image_name": "a", "print_dockerfile": True}, "print_dockerfile and image_name are both"),
        ({"yaml": "x", "dry_run": True}, "--yaml and --dry_run are both given"),
        ({"worker_resource_request": "gpu=0.5"}, "graphics cards are given whole"),
        ({"worker_resource_limit": "gpu=1"}, "graphics cards are given whole and as many"),
        ({"worker_resource_limit": "cpu=500m"}, "cpu is below the 1 that are requested"),
        ({"master_pod_priority": "high=0.5"}, "there is one master. Give a name alone"),
        ({"worker_pod_priority": "high=2"}, "2 is not a fraction. Give for example high=0.5."),
        ({"worker_pod_priority": "High"}, "'High' is not a name of a priority class"),
        ({"worker_pod_priority": "high=x"}, "Invalid worker_pod_priority 'x': give a number"),
        ({"queue": "q", "num_workers": "1:3"}, "Kueue admits jobs of one size. Give one number."),
        ({"queue": "My Queue"}, "Invalid queue 'My Queue'"),
        ({"namespace": "Team_A"}, "Invalid namespace 'Team_A'"),
        ({"ray_address": "auto"}, "Invalid ray_address with --cluster"),
        ({"debug": True}, "Invalid debug with --cluster"),
        ({"distribution_strategy": "Local"}, "Leave it out; --num_workers=1 has one."),
        ({"image_pull_policy": "always"}, "Did you mean 'Always'?"),
    ],
)
def test_slips_are_refused_with_what_to_give(values: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        asked(**values)
    assert said in str(refused.value)


def test_values_of_the_environment_are_in_no_error() -> None:
    with pytest.raises(InvalidValue) as refused:
        asked(envs="TOKEN=hunter2,oops hunter3")
    assert "its part 2 is not of the form NAME=value" in str(refused.value)
    assert "hunter" not in str(refused.value)


@pytest.mark.parametrize("name", ["yaml", "dry_run", "print_dockerfile", "detach"])
def test_nothing_is_trained_here_by_who_asks_for_a_manifest(name: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        JobConfig.parse("train", {name: "true"})
    assert f"{name} is for jobs on Kubernetes" in str(refused.value)
