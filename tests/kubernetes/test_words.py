"""What a job's state is called, and how pods that cannot start are told of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kuberay import IMAGE, KubeRay

from elasticdl.runtime.kubernetes.client import Cluster
from elasticdl.runtime.kubernetes.words import State, told

Manifest = Callable[..., dict[str, Any]]


@pytest.fixture
def look(cluster: Cluster, manifest: Manifest) -> Callable[[], State]:
    """How the job `mnist` is."""
    cluster.create(manifest("mnist"))

    def look() -> State:
        seen = cluster.look("mnist")
        return told(seen.job, seen.pods, seen.events)

    return look


def test_a_job_with_which_all_goes_well(look: Callable[[], State], kuberay: KubeRay) -> None:
    phases = [look().phase]
    for step in (kuberay.waits, kuberay.starts, kuberay.runs, kuberay.completes):
        step("mnist")
        state = look()
        phases.append(state.phase)
        assert state.troubles == ()
        assert state.is_over == state.succeeded == (state.phase == "completed")
    assert phases == ["submitted", "queued", "starting", "running", "completed"]


def test_a_failed_job_is_told_with_kuberays_words(
    look: Callable[[], State], kuberay: KubeRay
) -> None:
    kuberay.starts("mnist")
    kuberay.runs("mnist")
    long = "Job entrypoint command failed with exit code 1, last available logs (truncated):\nTraceback"
    kuberay.fails("mnist", long)
    assert look() == State("failed", "Job entrypoint command failed with exit code 1.", True, False)


def test_a_stopped_job_is_no_failure(look: Callable[[], State], kuberay: KubeRay) -> None:
    kuberay.starts("mnist")
    kuberay.runs("mnist")
    kuberay.is_stopped("mnist")
    state = look()
    assert (state.phase, state.is_over, state.succeeded) == ("stopped", True, False)


@pytest.mark.parametrize(
    ("deployment", "ray_says", "phase"),
    [
        ("", "", "submitted"),
        ("Initializing", "", "starting"),
        ("Waiting", "", "starting"),
        ("Retrying", "FAILED", "starting"),
        ("Running", "", "starting"),
        ("Running", "PENDING", "starting"),
        ("Running", "RUNNING", "running"),
        ("Running", "SUCCEEDED", "running"),  # its pods are about to go
        ("Suspending", "RUNNING", "queued"),
        ("Suspended", "", "queued"),
        ("Complete", "SUCCEEDED", "completed"),
        ("Complete", "FAILED", "failed"),  # an older KubeRay
        ("Complete", "STOPPED", "stopped"),
        ("Failed", "FAILED", "failed"),
        ("Failed", "", "failed"),
        ("ValidationFailed", "", "failed"),
        ("Terminating", "RUNNING", "stopped"),
        ("SomethingNew", "", "starting"),
    ],
)
def test_each_status_has_a_phase(deployment: str, ray_says: str, phase: str) -> None:
    status = {"jobDeploymentStatus": deployment, "jobStatus": ray_says}
    assert told({"metadata": {"name": "x"}, "status": status}, [], []).phase == phase


def test_a_job_without_a_status_is_submitted() -> None:
    assert told({"metadata": {"name": "x"}}, [], []).phase == "submitted"


def test_a_queued_job_names_its_queue() -> None:
    labels = {"kueue.x-k8s.io/queue-name": "team"}
    job = {"metadata": {"name": "x", "labels": labels}, "spec": {"suspend": True}}
    assert told(job, [], []).message == "It waits for room in the queue 'team'."


@pytest.mark.parametrize("reason", ["ErrImagePull", "ImagePullBackOff"])
def test_an_image_that_cannot_be_pulled(
    look: Callable[[], State], kuberay: KubeRay, reason: str
) -> None:
    kuberay.starts("mnist")
    kuberay.cannot_pull(kuberay.worker("mnist", 0), reason)
    kuberay.cannot_pull(kuberay.worker("mnist", 1), reason)
    (trouble,) = look().troubles  # the same of both pods
    assert IMAGE in trouble
    assert "manifest unknown" in trouble
    assert "--image_name" in trouble
    assert look().phase == "starting"


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("pull access denied, repository does not exist or may require authorization", "secret"),
        ("failed to authorize: 401 Unauthorized", "imagePullSecrets"),
        ("manifest for x:1 not found: manifest unknown", "typing error"),
        ("dial tcp: lookup registry on 10.0.0.10:53: no such host", "cannot reach"),
        ("http: server gave HTTP response to HTTPS client", "cannot reach"),
        ("something else", "imagePullSecrets"),
    ],
)
def test_an_image_pull_is_told_with_what_helps(said: str, advice: str) -> None:
    waiting = {"waiting": {"reason": "ErrImagePull", "message": said}}
    (trouble,) = told(_job(), [_pod(waiting)], []).troubles
    assert said in trouble
    assert advice in trouble


def test_a_pod_without_a_node_is_told_with_the_schedulers_words(
    look: Callable[[], State], kuberay: KubeRay
) -> None:
    kuberay.starts("mnist")
    kuberay.cannot_schedule(kuberay.worker("mnist"))
    (trouble,) = look().troubles
    assert "0/3 nodes are available: 3 Insufficient cpu." in trouble
    assert "--worker_resource_request" in trouble
    kuberay.cannot_schedule(kuberay.head("mnist"))
    assert "--master_resource_request" in " ".join(look().troubles)


def test_a_pod_that_needed_too_much_memory(look: Callable[[], State], kuberay: KubeRay) -> None:
    kuberay.starts("mnist")
    kuberay.runs("mnist")
    kuberay.is_killed_for_memory(kuberay.worker("mnist"))
    state = look()
    (trouble,) = state.troubles
    assert kuberay.worker("mnist") in trouble
    assert "OOMKilled" in trouble
    assert "2Gi" in trouble
    assert "--worker_resource_limit" in trouble
    assert state.phase == "running"


def test_a_failed_job_tells_of_the_memory_that_was_missing(
    look: Callable[[], State], kuberay: KubeRay
) -> None:
    kuberay.starts("mnist")
    kuberay.runs("mnist")
    kuberay.is_killed_for_memory(kuberay.head("mnist"))
    kuberay.server.on_read = lambda name: None
    job = kuberay.server.get("rayjobs", "mnist")
    job["status"] |= {"jobDeploymentStatus": "Failed", "jobStatus": "FAILED", "message": "Lost"}
    kuberay.server.put("rayjobs", job)
    assert "Lost. The head pod mnist-abcde-head was killed" in look().message


def test_a_pod_that_crashes_shows_its_last_lines(
    look: Callable[[], State], kuberay: KubeRay
) -> None:
    kuberay.starts("mnist")
    kuberay.crashes(kuberay.head("mnist"))
    (trouble,) = look().troubles
    assert "exit code 1" in trouble
    assert "No module named 'elasticdl'" in trouble
    assert "kubectl logs mnist-abcde-head -n default --previous" in trouble


def test_a_pod_that_was_evicted(look: Callable[[], State], kuberay: KubeRay) -> None:
    kuberay.starts("mnist")
    kuberay.runs("mnist")
    kuberay.is_evicted(kuberay.worker("mnist"))
    (trouble,) = look().troubles
    assert "evicted" in trouble
    assert "low on resource: memory." in trouble


@pytest.mark.parametrize("way", ["scheduler", "mount"])
def test_a_volume_claim_that_does_not_exist(
    look: Callable[[], State], kuberay: KubeRay, way: str
) -> None:
    said = 'persistentvolumeclaim "data" not found'
    kuberay.starts("mnist")
    if way == "scheduler":
        kuberay.cannot_schedule(kuberay.worker("mnist"), f"0/3 nodes are available: {said}.")
    else:
        kuberay.event(kuberay.worker("mnist"), "FailedMount", f"MountVolume failed: {said}")
    (trouble,) = look().troubles
    assert "volume claim 'data'" in trouble
    assert "kubectl get pvc" in trouble


def test_a_secret_that_does_not_exist() -> None:
    waiting = {"reason": "CreateContainerConfigError", "message": 'secret "envs" not found'}
    (trouble,) = told(_job(), [_pod({"waiting": waiting})], []).troubles
    assert 'secret "envs" not found' in trouble


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        (
            "pods is forbidden: exceeded quota: team, requested: cpu=4, used: cpu=8",
            "kubectl describe quota",
        ),
        ("pods is forbidden: no PriorityClass with name high was found", "'high'"),
        ("pods is forbidden: violates PodSecurity", "violates PodSecurity"),
    ],
)
def test_pods_that_are_not_even_made(
    look: Callable[[], State], kuberay: KubeRay, said: str, advice: str
) -> None:
    kuberay.starts("mnist")
    kuberay.event("mnist-abcde", "FailedToCreateHeadPod", said, kind="RayCluster")
    (trouble,) = look().troubles
    assert advice in trouble
    kuberay.runs("mnist")
    assert look().troubles == ()  # it was made in the end


def test_pods_that_are_taken_away_are_in_no_trouble() -> None:
    pod = _pod({"waiting": {"reason": "ErrImagePull"}})
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert told(_job(), [pod], []).troubles == ()


def test_containers_that_are_being_made_are_in_no_trouble() -> None:
    pod = _pod({"waiting": {"reason": "ContainerCreating"}})
    assert told(_job(), [pod], []).troubles == ()


def _job() -> dict[str, Any]:
    return {"metadata": {"name": "x"}, "status": {"jobDeploymentStatus": "Initializing"}}


def _pod(state: dict[str, Any]) -> dict[str, Any]:
    return {
        "metadata": {"name": "x-0", "labels": {"ray.io/node-type": "worker"}},
        "spec": {"containers": [{"name": "worker", "image": "x:1"}]},
        "status": {"phase": "Pending", "containerStatuses": [{"name": "worker", "state": state}]},
    }
