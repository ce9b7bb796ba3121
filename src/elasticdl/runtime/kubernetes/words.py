"""What a RayJob, its pods and their events mean, in words. Facts in, a state out; nobody is asked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from elasticdl.runtime.kubernetes.pod_words import pod_trouble

__all__ = ["State", "told"]

Object = dict[str, Any]

ENDS = {"completed", "failed", "stopped"}

DESCRIPTIONS = {
    "submitted": "KubeRay has not looked at it yet.",
    "queued": "It waits until there is room for it.",
    "starting": "Its pods are being started.",
    "running": "",
    "completed": "",
    "stopped": "It was stopped before its end.",
}


@dataclass(frozen=True)
class State:
    """How a job is.

    Attributes:
      phase: submitted, queued, starting, running, completed, failed or stopped.
      message: why it is so, and what to do; empty where there is nothing to say.
      is_over: nothing will change any more.
      succeeded: it came to its end.
      troubles: what keeps its pods from running, each with what to do.
    """

    phase: str
    message: str
    is_over: bool
    succeeded: bool
    troubles: tuple[str, ...] = ()


def told(job: Object, pods: Sequence[Object], events: Sequence[Object]) -> State:
    """The state of a job.

    Args:
      job: the RayJob.
      pods: its pods, as far as they are there.
      events: what Kubernetes tells of the job, its Ray cluster and its pods, oldest first.
    """
    phase = _phase(job)
    troubles: tuple[str, ...] = ()
    if phase not in ("completed", "stopped"):
        troubles = _troubles(phase, pods, events)
    return State(
        phase=phase,
        message=_message(phase, job, troubles),
        is_over=phase in ENDS,
        succeeded=phase == "completed",
        troubles=troubles,
    )


def _phase(job: Object) -> str:
    status = job.get("status") or {}
    deployment, ray_says = status.get("jobDeploymentStatus", ""), status.get("jobStatus", "")
    if deployment in ("Complete", "Failed", "ValidationFailed"):
        if ray_says == "STOPPED":
            return "stopped"
        return "completed" if deployment == "Complete" and ray_says != "FAILED" else "failed"
    if job["metadata"].get("deletionTimestamp") or deployment == "Terminating":
        return "stopped"
    if deployment in ("Suspended", "Suspending") or job.get("spec", {}).get("suspend"):
        return "queued"
    if deployment == "Running" and ray_says not in ("", "PENDING"):
        return "running"
    return "starting" if deployment not in ("", "New") else "submitted"


def _message(phase: str, job: Object, troubles: tuple[str, ...]) -> str:
    if phase == "failed":
        return " ".join([_failure(job.get("status") or {}), *troubles])
    if phase == "queued":
        queue = job["metadata"].get("labels", {}).get("kueue.x-k8s.io/queue-name")
        return f"It waits for room in the queue {queue!r}." if queue else DESCRIPTIONS[phase]
    return " ".join(troubles) or DESCRIPTIONS[phase]


def _failure(status: Object) -> str:
    """KubeRay's words without the log that it adds to them: that one is shown already."""
    message = str(status.get("message") or "").strip()
    first = (
        message.splitlines()[0] if message else str(status.get("reason") or "No reason is given")
    )
    first = re.sub(r",? last available logs.*", "", first).rstrip(" .:")
    if status.get("reason") == "DeadlineExceeded":
        return f"{first}. It ran for longer than it may (activeDeadlineSeconds)."
    return f"{first}."


def _troubles(phase: str, pods: Sequence[Object], events: Sequence[Object]) -> tuple[str, ...]:
    """What keeps pods from running: pods with the same trouble are told of once."""
    found = []
    for pod in pods:
        name = pod["metadata"]["name"]
        about = [event for event in events if event["involvedObject"]["name"] == name]
        if trouble := pod_trouble(pod, about):
            found.append(trouble)
    if phase in ("submitted", "starting"):
        found += [text for event in events if (text := _not_made(event))]
    return tuple(dict.fromkeys(found))


def _not_made(event: Object) -> str | None:
    """Why a pod was not even made: that is told of the Ray cluster or the job, not of a pod."""
    said = str(event.get("message", "")).strip().rstrip(".")
    if event["involvedObject"].get("kind") == "Pod":
        return None
    if "exceeded quota" in said:
        return (
            f"The namespace's quota does not allow a pod: {said}. Ask for less with --num_workers, "
            "--worker_resource_request and --master_resource_request, or let the quota be raised "
            "(see it with: kubectl describe quota)."
        )
    if missing := re.search(r"no PriorityClass with name (\S+) was found", said):
        return (
            f"The cluster has no priority class {missing[1]!r}. See those that it has with: kubectl get "
            "priorityclass, and give one of them with --worker_pod_priority and --master_pod_priority."
        )
    if re.search(r"Failed.*Pod|forbidden", str(event.get("reason", "")) + " " + said):
        return f"A pod could not be made: {said}."
    return None
