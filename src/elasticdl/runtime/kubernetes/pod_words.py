"""Why a pod does not run, in words: the server's own, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

__all__ = ["pod_trouble"]

Object = dict[str, Any]

PULL = {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}
CANNOT_BE_MADE = {"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}
LOST = {"Preempting", "Shutdown", "NodeLost", "NodeShutdown", "Terminated", "NodeAffinity"}

CREDENTIALS = re.compile(
    r"unauthorized|denied|authentication required|no basic auth|forbidden|\b40[13]\b", re.I
)
ABSENT = re.compile(
    r"not found|manifest unknown|does not exist|name unknown|invalid reference", re.I
)
NO_WAY = re.compile(r"no such host|timeout|timed out|refused|unreachable|x509|HTTPS client", re.I)


def pod_trouble(pod: Object, events: Sequence[Object]) -> str | None:
    """What keeps a pod from running; None where nothing does.

    Pods of a role with the same trouble give the same words, unless their names matter.

    Args:
      pod: the pod.
      events: what Kubernetes tells of it, oldest first.
    """
    if pod["metadata"].get("deletionTimestamp"):
        return None
    return (
        _lost(pod)
        or _containers(pod, events)
        or _not_placed(pod)
        or _not_mounted(pod, events)
        or None
    )


def _role(pod: Object) -> str:
    labels = pod["metadata"].get("labels", {})
    kind = labels.get("ray.io/node-type")
    if kind:
        return "head" if kind == "head" else "worker"
    return "submitter" if "job-name" in labels else "pod"


def _flag(pod: Object, kind: str) -> str:
    return f"--{'worker' if _role(pod) == 'worker' else 'master'}_resource_{kind}"


def _who(pod: Object) -> str:
    return f"The {_role(pod)} pod {pod['metadata']['name']}"


def _lost(pod: Object) -> str | None:
    status = pod.get("status", {})
    why, said = status.get("reason", ""), _sentence(status.get("message", ""))
    if why == "Evicted":
        return (
            f"{_who(pod)} was evicted from its node: {said} "
            f"Ask for what it really uses with {_flag(pod, 'request')}."
        )
    if why in LOST:
        return f"{_who(pod)} was lost with its node ({why}): {said}".rstrip(": ")
    return None


def _containers(pod: Object, events: Sequence[Object]) -> str | None:
    status = pod.get("status", {})
    for each in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]:
        for text in _container(pod, each, events):
            return text
    return None


def _container(pod: Object, container: Object, events: Sequence[Object]) -> Iterator[str]:
    state, last = container.get("state", {}), container.get("lastState", {})
    waiting = state.get("waiting", {})
    ended = state.get("terminated") or last.get("terminated") or {}
    if waiting.get("reason") in PULL:
        yield _not_pulled(pod, container, waiting, events)
    if ended.get("reason") == "OOMKilled":
        yield _no_memory(pod, container)
    if waiting.get("reason") in CANNOT_BE_MADE:
        yield (
            f"The {_role(pod)} pod's container cannot be made: {_sentence(waiting.get('message', ''))} "
            "It names a Secret, ConfigMap, volume or command that is not there."
        )
    if waiting.get("reason") == "CrashLoopBackOff":
        yield _crashes(pod, ended)


def _not_pulled(pod: Object, container: Object, waiting: Object, events: Sequence[Object]) -> str:
    image = container.get("image") or _spec(pod, container).get("image", "")
    told = [str(event.get("message", "")) for event in events if event.get("reason") == "Failed"]
    pulls = [text for text in told if "pull" in text]
    said = pulls[-1] if pulls else str(waiting.get("message", ""))
    said = re.sub(r'^Failed to pull image "[^"]*": ', "", said)
    start = f"The {_role(pod)} pod's image {image} cannot be pulled: {_sentence(said)}"
    return f"{start} {_how_to_pull(said, waiting.get('reason', ''))}"


def _how_to_pull(said: str, why: str) -> str:
    if why == "ErrImageNeverPull":
        return "It is on no node, and --image_pull_policy=Never forbids to fetch it."
    if CREDENTIALS.search(said):
        return (
            "The nodes need credentials: make them with kubectl create secret docker-registry, and name the "
            "secret in imagePullSecrets of the namespace's service account. Or the name is misspelt."
        )
    if ABSENT.search(said) or why == "InvalidImageName":
        return "Look for a typing error in --image_name, and whether the image was pushed."
    if NO_WAY.search(said):
        return "The nodes cannot reach this registry: push to one that they can, or let them in."
    return "Look for a typing error in its name; a private registry needs imagePullSecrets."


def _no_memory(pod: Object, container: Object) -> str:
    limit = _spec(pod, container).get("resources", {}).get("limits", {}).get("memory")
    had = f"It may have {limit}" if limit else "Its node had no more"
    flag = _flag(pod, "limit")
    return (
        f"{_who(pod)} was killed because it needed too much memory (OOMKilled). {had}: "
        f'give more with {flag}="memory=..." or take a smaller --minibatch_size.'
    )


def _crashes(pod: Object, ended: Object) -> str:
    names = pod["metadata"]
    code = ended.get("exitCode", "unknown")
    lines = str(ended.get("message") or "").strip().splitlines()[-5:]
    last = f" Its last lines: {_sentence(' | '.join(lines))}" if lines else ""
    return (
        f"{_who(pod)} ends again and again, with exit code {code} (CrashLoopBackOff).{last} "
        f"See more with: kubectl logs {names['name']} -n {names.get('namespace', 'default')} --previous"
    )


def _not_placed(pod: Object) -> str | None:
    for condition in pod.get("status", {}).get("conditions", []):
        is_placed = condition.get("type") != "PodScheduled" or condition.get("status") != "False"
        if is_placed or condition.get("reason") == "SchedulingGated":
            continue
        said = str(condition.get("message", ""))
        return _no_claim(said) or (
            f"No node has room for a {_role(pod)} pod: {_sentence(said)} Ask for less with "
            f"{_flag(pod, 'request')}, wait for others to end, or let the cluster grow (an autoscaler)."
        )
    return None


def _not_mounted(pod: Object, events: Sequence[Object]) -> str | None:
    if pod.get("status", {}).get("phase") != "Pending":
        return None
    for event in reversed(events):
        said = str(event.get("message", ""))
        if event.get("reason") in ("FailedMount", "FailedAttachVolume"):
            return _no_claim(said) or (
                f"A volume of the {_role(pod)} pod cannot be mounted: {_sentence(said)} Look at --volume."
            )
    return None


def _no_claim(said: str) -> str | None:
    missing = re.search(r'persistentvolumeclaim "([^"]+)" not found', said)
    if missing is None:
        return None
    return (
        f"The volume claim {missing[1]!r} of --volume does not exist in the namespace. "
        "See those that do with: kubectl get pvc"
    )


def _spec(pod: Object, container: Object) -> Object:
    spec = pod.get("spec", {})
    every = [*spec.get("initContainers", []), *spec.get("containers", [])]
    return next((each for each in every if each["name"] == container["name"]), {})


def _sentence(said: object) -> str:
    text = " ".join(str(said or "no reason is given").split())
    return text if text.endswith((".", "!", "?")) else f"{text}."
