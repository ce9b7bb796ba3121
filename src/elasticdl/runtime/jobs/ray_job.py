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

SAID_ANEW = ("output", "image_name", "num_workers", "cluster", "namespace", "job_name")
OF_THE_POD = (
    "project_root",
    "distribution_strategy",
    "num_workers",
    "worker_resource_request",
    "ray_address",
)
"""Flags that the command in the pod has, and not the user's."""


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
    """The command that goes on with a job: in the same image, with as many workers and what else it had.

    An experiment goes on by itself when the same command is given again.

    Args:
      where: the flags that lead to the cluster.
    """
    pod = job["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]
    anew = {
        "image_name": pod["containers"][0].get("image"),
        "num_workers": noted(job, "num_workers"),
    }
    if noted(job, "command") == "run":
        start = ["elasticdl", "run", *_words(job["spec"].get("entrypoint"), OF_THE_POD)[2:]]
    else:
        start = ["elasticdl", "train", "--resume"]
        anew = {"output": noted(job, "output"), **anew}
    given = [f"--{name}={value}" for name, value in anew.items() if value]
    return f"{shlex.join([*start, *given, *_words(noted(job, 'flags'), SAID_ANEW)])} {where}"


def _words(text: str | None, without: Sequence[str]) -> list[str]:
    """The words of a command, without those flags."""
    with contextlib.suppress(ValueError):  # somebody else wrote it
        words = shlex.split(text or "")
        return [word for word in words if _flag(word) not in without]
    return []


def _flag(word: str) -> str:
    return word.removeprefix("--").partition("=")[0] if word.startswith("--") else ""


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
