"""A RayJob that is created, also where nobody heard the answer: a job that runs is one that its user knows of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from elasticdl.errors import RunError
from elasticdl.runtime.kubernetes.coming_back import detached, goes_on
from elasticdl.runtime.kubernetes.refusals import Refused, Unreachable, is_passing

if TYPE_CHECKING:
    from elasticdl.runtime.kubernetes.client import Cluster

__all__ = ["created"]

Object = dict[str, Any]


def created(cluster: Cluster, manifest: Mapping[str, Any], create: Callable[[], Object]) -> Object:
    """The RayJob that was created.

    Args:
      create: asks the server to.

    Raises:
      Detached: Ctrl-C; it says whether the job is there.
      RunError: there is no answer, and no job.
    """
    try:
        return create()
    except KeyboardInterrupt as interrupt:
        stopped = interrupt
    except (Refused, Unreachable) as error:
        if not is_passing(error):
            raise
        if (job := _found(cluster, manifest, error)) is not None:
            return job
        raise
    raise detached(_what_is_left(cluster, manifest), stopped)


def _found(cluster: Cluster, manifest: Mapping[str, Any], error: RunError) -> Object | None:
    """The job, if it is there after all; else the error gets a word on it."""
    try:
        job = cluster.find(manifest["metadata"]["name"])
    except RunError:
        error.add_note(_unknown(cluster, manifest))
        return None
    if job is not None and not _is_it(job, manifest):
        job = None
    if job is None:
        error.add_note("The job is not there.")
    return job


def _what_is_left(cluster: Cluster, manifest: Mapping[str, Any]) -> str:
    name = manifest["metadata"]["name"]
    try:
        job = cluster.find(name)
    except RunError:
        return _unknown(cluster, manifest)
    if job is not None and _is_it(job, manifest):
        return f"The job {name!r} was created already. {goes_on(cluster, name)}"
    return f"The job {name!r} was not created."


def _unknown(cluster: Cluster, manifest: Mapping[str, Any]) -> str:
    name = manifest["metadata"]["name"]
    return (
        f"It is not known whether the job {name!r} was created. See with: "
        f"kubectl get rayjob {name} -n {cluster.namespace}"
    )


def _is_it(job: Object, manifest: Mapping[str, Any]) -> bool:
    """Whether it is this one, and not another of its name."""
    return bool(job.get("spec", {}).get("entrypoint") == manifest["spec"]["entrypoint"])
