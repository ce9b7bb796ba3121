"""What is looked at before a job is submitted: each trouble is told with the command that mends it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from elasticdl.errors import InvalidValue, RunError, UnknownName
from elasticdl.runtime.kubernetes.refusals import Refused
from elasticdl.runtime.kubernetes.words import told

if TYPE_CHECKING:
    from elasticdl.runtime.kubernetes.client import Cluster

__all__ = [
    "INSTALL_KUBERAY",
    "MAX_NAME",
    "check_job",
    "check_name",
    "check_namespace",
    "check_namespace_name",
    "check_server",
    "check_submission",
    "is_ours",
]

INSTALL_KUBERAY = (
    "kubectl create namespace ray-system; kubectl create -n ray-system -k "
    '"github.com/ray-project/kuberay/ray-operator/config/default?ref=v1.7.0"'
)
MAX_NAME = 47
"""KubeRay makes longer names of it, for the Ray cluster, its pods and services: they end at 63."""

NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
ANY_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
"""What Kubernetes itself calls things. Others would be parts of an address: with an empty one it is that of all."""


def check_job(name: str) -> None:
    """Refuse what can be no name of a job, before it becomes a part of an address.

    >>> check_job("mnist-2")
    """
    if not ANY_NAME.fullmatch(name):
        raise InvalidValue(
            f"Invalid job {name!r}: on Kubernetes a name has small letters, digits, '-' and '.', and begins and ends "
            "with a letter or a digit. See all with: elasticdl jobs list --cluster=kubernetes"
        )


def check_namespace_name(name: str) -> None:
    """Refuse what can be no name of a namespace.

    >>> check_namespace_name("team-1")
    """
    if not NAMESPACE.fullmatch(name):
        raise InvalidValue(
            f"Invalid namespace {name!r}: it has small letters, digits and '-', and begins and ends with a letter or "
            "a digit. See all with: kubectl get namespaces"
        )


def is_ours(job: dict[str, Any]) -> bool:
    """Whether ElasticDL has made a RayJob."""
    labels = job["metadata"].get("labels") or {}
    return bool(labels.get("app.kubernetes.io/managed-by") == "elasticdl")


def check_name(name: str) -> None:
    """Refuse a job's name that KubeRay would refuse.

    >>> check_name("mnist-2")
    """
    if len(name) > MAX_NAME:
        raise InvalidValue(
            f"Invalid job_name {name!r}: it has {len(name)} characters, and a job on Kubernetes may "
            f"have {MAX_NAME}. Give a shorter one with --job_name."
        )
    if not NAME.fullmatch(name):
        raise InvalidValue(
            f"Invalid job_name {name!r}: on Kubernetes it starts with a small letter, has small letters, "
            "digits and '-' only, and does not end with '-'. Give for example --job_name=mnist-2."
        )


def check_server(cluster: Cluster) -> None:
    """Refuse a cluster that does not answer, a namespace that is not there, and a lack of KubeRay."""
    _or_forbidden(cluster.version)
    check_namespace(cluster)
    if not _or_forbidden(cluster.has_kuberay):
        raise no_kuberay(cluster)


def check_namespace(cluster: Cluster) -> None:
    """Refuse a namespace that is not there."""
    if not _or_forbidden(cluster.has_namespace):
        raise UnknownName(
            f"The cluster has no namespace {cluster.namespace!r}. Create it with: "
            f"kubectl create namespace {cluster.namespace}"
        )


def check_submission(cluster: Cluster, name: str) -> None:
    """Refuse what cannot be submitted: see `Cluster.check`."""
    check_name(name)
    check_server(cluster)
    if not _or_forbidden(lambda: cluster.may("create", "rayjobs", group="ray.io")):
        raise RunError(
            f"You may not create RayJobs in the namespace {cluster.namespace!r}. Ask whoever runs the "
            "cluster for the rights in deploy/rbac.yaml. See what you may do with: "
            f"kubectl auth can-i create rayjobs.ray.io -n {cluster.namespace}"
        )
    if cluster.has_job(name):
        raise name_taken(name, cluster)


def _or_forbidden(ask: Callable[[], object]) -> object:
    """What is answered, or yes where one may not ask: who creates the job hears of it then."""
    try:
        return ask()
    except Refused as error:
        if error.status != 403:
            raise
        return True


def no_kuberay(cluster: Cluster) -> RunError:
    """The error for a cluster that does not know RayJobs."""
    return RunError(
        f"KubeRay is not installed in the cluster at {cluster.host}: it does not know RayJobs. "
        f"Install it with: {INSTALL_KUBERAY}"
    )


def name_taken(name: str, cluster: Cluster) -> InvalidValue:
    """The error for a job whose name another one has."""
    old = cluster.find(name)
    where = f"{name} --cluster={shlex.quote(cluster.flag)} --namespace={cluster.namespace}"
    how = f"kubectl delete rayjob {name} -n {cluster.namespace}"
    if old is not None and is_ours(old):
        how = f"elasticdl jobs stop --now {where} (or: {how})"
    runs = old is not None and not told(old, [], []).is_over
    when = " when it has ended" if runs else ""
    return InvalidValue(
        f"Invalid job_name {name!r}: the namespace {cluster.namespace!r} has a RayJob of this name. "
        f"Give another --job_name, or take the old one away{when} with: {how}"
    )
