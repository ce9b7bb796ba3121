"""What a RayJob and its pods say of a job. Pure: objects of Kubernetes in, an account out."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from elasticdl.runtime.jobs.account import Account
from elasticdl.runtime.kubernetes.client import Object
from elasticdl.runtime.kubernetes.words import State

__all__ = [
    "STOPPED",
    "WITH_CHECKPOINTS",
    "account_of_job",
    "head_runs",
    "noted",
    "resume_command",
]

WITH_CHECKPOINTS = ("train", "run")
"""The commands whose jobs have a run directory."""
STOPPED = "elasticdl/stopped"
"""The annotation of a job that was asked to stop: its driver ends with an exit code, which is a failure to KubeRay."""


def account_of_job(job: Object, state: State, pods: Sequence[Object], where: str) -> Account:
    """The account of a job.

    Args:
      where: for a job that has no run directory.
    """
    metadata, status = job["metadata"], job.get("status") or {}
    is_stopped = state.phase == "failed" and STOPPED in metadata.get("annotations", {})
    return Account(
        name=metadata["name"],
        where=noted(job, "output") or where,
        command=noted(job, "command") or "",
        status="interrupted" if is_stopped else state.phase,
        message=None if is_stopped else state.message or None,
        workers=() if state.is_over else _workers(pods),
        wanted=noted(job, "num_workers"),
        started=_seconds(status.get("startTime") or metadata.get("creationTimestamp")),
        ended=_seconds(status.get("endTime")) if state.is_over else None,
    )


def noted(job: Object, name: str) -> str | None:
    """What ElasticDL wrote down in one of its annotations."""
    value = job["metadata"].get("annotations", {}).get(f"elasticdl/{name}")
    return None if value is None else str(value)


def resume_command(job: Object, where: str) -> str:
    """The command that goes on with a training, in the same image and with as many workers.

    Args:
      where: the flags that lead to the cluster.
    """
    spec = job["spec"]["rayClusterSpec"]
    pod = spec["headGroupSpec"]["template"]["spec"]
    flags = {
        "output": noted(job, "output"),
        "image_name": pod["containers"][0].get("image"),
        "num_workers": noted(job, "num_workers"),
        "volume": _volumes(pod),
    }
    given = [f"--{name}={shlex.quote(value)}" for name, value in flags.items() if value]
    return " ".join(["elasticdl train --resume", *given, where])


def _volumes(pod: Object) -> str:
    """As --volume takes them."""
    mounts = {m["name"]: m["mountPath"] for m in pod["containers"][0].get("volumeMounts", [])}
    found = []
    for volume in pod.get("volumes", []):
        claim = volume.get("persistentVolumeClaim", {}).get("claimName")
        path = volume.get("hostPath", {}).get("path")
        source = f"claim_name={claim}" if claim else f"host_path={path}" if path else ""
        if source and volume["name"] in mounts:
            found.append(f"{source},mount_path={mounts[volume['name']]}")
    return ";".join(found)


def head_runs(pods: Sequence[Object]) -> bool:
    return any(_runs(pod, "head") for pod in pods)


def _workers(pods: Sequence[Object]) -> tuple[str, ...]:
    return tuple(pod["metadata"]["name"] for pod in pods if _runs(pod, "worker"))


def _runs(pod: Object, role: str) -> bool:
    labels: dict[str, Any] = pod["metadata"].get("labels", {})
    is_running = pod.get("status", {}).get("phase") == "Running"
    return is_running and labels.get("ray.io/node-type") == role


def _seconds(moment: str | None) -> float | None:
    with contextlib.suppress(ValueError, TypeError):
        return datetime.fromisoformat(moment).timestamp() if moment else None
    return None
