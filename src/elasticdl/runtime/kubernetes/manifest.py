"""A RayJob of what was asked for: plain data, made without a cluster.

Each worker pod offers Ray as many processors as one worker asks for, so there is one worker in each; the head offers
none, and has the driver and the master.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from elasticdl.artifacts.message import IMAGE_VARIABLE
from elasticdl.runtime.kubernetes.request import ClusterRequest, Pods

__all__ = ["DRAIN_S", "JobPlan", "ray_job", "ray_secret"]

DRAIN_S = 45
"""How long a worker may take to leave its group; for the rest of its pod there is a little more."""
GRACE_S = DRAIN_S + 15
DASHBOARD_PORT = 8265

SPOT = (
    ("cloud.google.com/gke-spot", "true"),
    ("kubernetes.azure.com/scalesetpriority", "spot"),
    ("karpenter.sh/capacity-type", "spot"),
    ("eks.amazonaws.com/capacityType", "SPOT"),
)
"""How nodes say that they may be taken away, as label and as taint."""

Manifest = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class JobPlan:
    """What to run there."""

    name: str
    command: str
    """Of `elasticdl`, for who lists jobs."""
    argv: Sequence[str]
    image: str
    ray_version: str | None = None
    """Of the Ray in the image, where it is known."""
    output: str | None = None
    flags: Sequence[str] = ()
    """What was asked of the cluster, for who goes on with the job."""
    secrets: Mapping[str, str] = field(default_factory=dict)
    """Environment that must not be read in a manifest."""
    secret_name: str = ""
    with_pod: Callable[[Manifest], Manifest] = lambda pod: pod
    """May change the metadata and the spec of each pod."""


def ray_job(request: ClusterRequest, plan: JobPlan) -> Manifest:
    """The RayJob."""
    least, most = request.workers
    metadata: Manifest = {
        "name": plan.name,
        "labels": _labels(plan),
        "annotations": {
            "elasticdl/command": plan.command,
            "elasticdl/num_workers": str(least) if least == most else f"{least}:{most}",
            "elasticdl/flags": shlex.join(plan.flags),
        },
    }
    if request.namespace:
        metadata["namespace"] = request.namespace
    if plan.output is not None:
        metadata["annotations"]["elasticdl/output"] = plan.output
    if request.queue:
        metadata["labels"]["kueue.x-k8s.io/queue-name"] = request.queue
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": metadata,
        "spec": {
            "entrypoint": _literal(shlex.join(plan.argv)),
            "submissionMode": "K8sJobMode",
            "submitterPodTemplate": _pod(request, plan, "submitter"),
            # Its output stays readable: the pod that prints it is left.
            "shutdownAfterJobFinishes": True,
            "ttlSecondsAfterFinished": 30,
            # To begin anew would be to overwrite: a user resumes.
            "backoffLimit": 0,
            "rayClusterSpec": _ray_cluster(request, plan),
        },
    }


def ray_secret(request: ClusterRequest, plan: JobPlan) -> Manifest | None:
    """The Secret that the job's pods read, if there is anything to keep."""
    if not plan.secrets:
        return None
    metadata = {"name": plan.secret_name, "labels": _labels(plan)}
    if request.namespace:
        metadata["namespace"] = request.namespace
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": "Opaque",
        "stringData": dict(plan.secrets),
    }


def _ray_cluster(request: ClusterRequest, plan: JobPlan) -> Manifest:
    least, most = request.workers
    spec: Manifest = {
        "headGroupSpec": {
            "rayStartParams": {"num-cpus": "0", "dashboard-host": "0.0.0.0"},
            "template": _pod(request, plan, "master"),
        },
        "workerGroupSpecs": [
            _group(request, plan, group) for group in _groups(request) if group.most
        ],
    }
    if plan.ray_version:
        spec["rayVersion"] = plan.ray_version
    if least != most:
        spec["enableInTreeAutoscaling"] = True
        spec["autoscalerOptions"] = {"upscalingMode": "Default", "idleTimeoutSeconds": 60}
    return spec


@dataclass(frozen=True)
class _Group:
    """Workers that are alike."""

    name: str
    least: int
    most: int
    priority: str | None = None
    spot: bool = False


def _groups(request: ClusterRequest) -> list[_Group]:
    """By priority, and by what is on nodes that may be taken away."""
    least, most = request.workers
    worker = request.worker
    if worker.fraction < 1:
        high_least, high_most = (round_half_up(n * worker.fraction) for n in (least, most))
        parts = [
            _Group("workers", least - high_least, most - high_most),
            _Group("workers-priority", high_least, high_most, worker.priority),
        ]
    else:
        parts = [_Group("workers", least, most, worker.priority)]
    return [group for part in parts for group in _on_nodes(part, request)]


def _on_nodes(group: _Group, request: ClusterRequest) -> list[_Group]:
    if not request.spot:
        return [group]
    if request.workers[0] == request.workers[1]:
        return [_Group(group.name, group.least, group.most, group.priority, spot=True)]
    return [
        _Group(group.name, group.least, group.least, group.priority),
        _Group(f"{group.name}-spot", 0, group.most - group.least, group.priority, spot=True),
    ]


def _group(request: ClusterRequest, plan: JobPlan, group: _Group) -> Manifest:
    params = {"num-cpus": str(math.ceil(request.worker.cpus))}
    if request.worker.gpus:
        params["num-gpus"] = str(int(request.worker.gpus))
    return {
        "groupName": group.name,
        "replicas": group.least,
        "minReplicas": group.least,
        "maxReplicas": group.most,
        "rayStartParams": params,
        "template": _pod(request, plan, "worker", group),
    }


def _pod(
    request: ClusterRequest, plan: JobPlan, role: str, group: _Group | None = None
) -> Manifest:
    """The template of a pod; its role is a label, by which `with_pod` may tell them apart."""
    pods = {"master": request.master, "worker": request.worker}.get(role, _SUBMITTER)
    container: Manifest = {
        "name": {"master": "ray-head", "worker": "ray-worker"}.get(role, "submitter"),
        "image": plan.image,
        "resources": {"requests": dict(pods.requests), "limits": dict(pods.limits)},
        # The last lines of a container that fails are then in its pod's status.
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    if request.pull_policy:
        container["imagePullPolicy"] = request.pull_policy
    spec: Manifest = {"containers": [container]}
    if role == "submitter":
        spec["restartPolicy"] = "Never"
    else:
        _furnish(request, plan, role, spec, container)
    priority = group.priority if group else pods.priority
    if priority:
        spec["priorityClassName"] = priority
    if group and group.spot:
        spec.update(_on_spot())
    labels = {**_labels(plan), "elasticdl/role": role}
    return plan.with_pod({"metadata": {"labels": labels}, "spec": spec})


def _furnish(
    request: ClusterRequest, plan: JobPlan, role: str, spec: Manifest, container: Manifest
) -> None:
    """What pods of the Ray cluster have and the one that submits does not need."""
    container["env"] = _environment(request, plan)
    if request.restart_policy:
        spec["restartPolicy"] = request.restart_policy
    if request.volumes:
        spec["volumes"], container["volumeMounts"] = _volumes(request)
    if role == "master":
        container["ports"] = [
            {"containerPort": 6379, "name": "gcs"},
            {"containerPort": DASHBOARD_PORT, "name": "dashboard"},
            {"containerPort": 10001, "name": "client"},
        ]
        return
    spec["terminationGracePeriodSeconds"] = GRACE_S
    drain = ["python", "-m", "elasticdl.runtime.kubernetes.drain", str(DRAIN_S)]
    container["lifecycle"] = {"preStop": {"exec": {"command": drain}}}


def _environment(request: ClusterRequest, plan: JobPlan) -> list[Manifest]:
    plain = {IMAGE_VARIABLE: plan.image, **request.envs}
    env: list[Manifest] = [
        {"name": name, "value": _literal(value)} for name, value in plain.items()
    ]
    for name in plan.secrets:
        reference = {"secretKeyRef": {"name": plan.secret_name, "key": name}}
        env.append({"name": name, "valueFrom": reference})
    return env


def _volumes(request: ClusterRequest) -> tuple[list[Manifest], list[Manifest]]:
    volumes: list[Manifest] = []
    for number, volume in enumerate(request.volumes):
        source = (
            {"persistentVolumeClaim": {"claimName": volume.claim}}
            if volume.claim
            else {"hostPath": {"path": volume.host_path}}
        )
        volumes.append({"name": f"volume-{number}", **source})
    mounts: list[Manifest] = [
        {"name": f"volume-{number}", "mountPath": volume.mount_path}
        for number, volume in enumerate(request.volumes)
    ]
    return volumes, mounts


def _on_spot() -> Manifest:
    """Tolerated where they are tainted, wanted where they are labelled."""
    tolerations = [
        {"key": key, "operator": "Equal", "value": value, "effect": effect}
        for key, value in SPOT
        for effect in ("NoSchedule", "NoExecute")
    ]
    preferred = [
        {
            "weight": 100,
            "preference": {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]},
        }
        for key, value in SPOT
    ]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    return {"tolerations": tolerations, "affinity": affinity}


def _literal(text: str) -> str:
    """For Kubernetes, which takes `$(NAME)` for a variable and `$$` for a dollar, in quotes too."""
    return text.replace("$", "$$")


def round_half_up(number: float) -> int:
    """
    >>> round_half_up(0.5), round_half_up(1.4)
    (1, 1)
    """
    return math.floor(number + 0.5)


def _labels(plan: JobPlan) -> dict[str, str]:
    return {"app.kubernetes.io/managed-by": "elasticdl", "elasticdl/job": plan.name}


_SUBMITTER = Pods(
    requests={"cpu": "100m", "memory": "512Mi"},
    limits={"cpu": "1", "memory": "1024Mi"},
    cpus=0.1,
    gpus=0,
)
