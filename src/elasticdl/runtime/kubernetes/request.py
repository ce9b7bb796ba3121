"""What a user asks of a Kubernetes cluster, parsed and checked. Nothing here talks to one."""

from __future__ import annotations

import math
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from elasticdl.errors import InvalidValue, nearest
from elasticdl.job.config import JobConfig
from elasticdl.job.parse import parse_float, parse_resources

__all__ = [
    "ClusterRequest",
    "Pods",
    "Volume",
    "parse_cluster",
    "parse_envs",
    "parse_priority",
    "parse_volumes",
]

DEFAULT = "cpu=1,memory=4096Mi"
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_GPU = "nvidia.com/gpu"
_OF_ONE_MACHINE = ("", "file", "local", "memory", "sqlite")
"""Schemes of addresses at which every machine has something else."""
_LEAST_MEMORY = 64 << 20
_MOST_WORKERS = 10_000
_TAKEN = ("/model_zoo", "/tmp", "/dev", "/proc", "/sys", "/usr", "/bin", "/lib", "/etc")
"""Where pods have something of their own."""
_KUBERNETES_NAMES = {
    "cpu": "cpu",
    "memory": "memory",
    "gpu": _GPU,
    "disk": "ephemeral-storage",
}


@dataclass(frozen=True)
class Volume:
    """A volume that all pods see. One of `claim` and `host_path` is given."""

    mount_path: str
    claim: str | None = None
    host_path: str | None = None


@dataclass(frozen=True)
class Pods:
    """What each pod of a role gets."""

    requests: Mapping[str, str]
    """By Kubernetes' names of resources, in its quantities."""
    limits: Mapping[str, str]
    cpus: float
    gpus: float
    priority: str | None = None
    fraction: float = 1.0
    """How much of the pods have the priority."""


@dataclass(frozen=True, kw_only=True)
class ClusterRequest:
    """All of it."""

    context: str | None
    """Of the kubeconfig; None for the current one."""
    namespace: str | None
    """None for the context's."""
    workers: tuple[int, int]
    master: Pods
    worker: Pods
    volumes: tuple[Volume, ...] = ()
    envs: Mapping[str, str] = field(default_factory=dict)
    pull_policy: str | None = None
    restart_policy: str | None = None
    spot: bool = False
    queue: str | None = None

    @classmethod
    def of(cls, config: JobConfig) -> ClusterRequest:
        """What a job's options say.

        Raises:
          InvalidValue: one of them cannot be understood, or contradicts another.
        """
        assert config.cluster is not None
        _refuse_contradictions(config)
        return cls(
            context=parse_cluster(config.cluster),
            namespace=config.namespace,
            workers=config.workers,
            master=_pods(config, "master"),
            worker=_pods(config, "worker"),
            volumes=parse_volumes(config.volume or ""),
            envs=parse_envs(config.envs or ""),
            pull_policy=config.image_pull_policy,
            restart_policy=config.restart_policy,
            spot=config.spot,
            queue=config.queue,
        )

    def sees(self, path: str) -> bool:
        """Whether all pods find the same there: it is an address, or below a volume."""
        scheme, colon, rest = path.partition("://")
        if colon:
            return bool(rest.strip("/")) and scheme.split("::")[-1] not in _OF_ONE_MACHINE
        if not posixpath.isabs(path):
            return False
        plain = posixpath.normpath(path)
        mounts = [posixpath.normpath(volume.mount_path) for volume in self.volumes]
        return any(plain == mount or plain.startswith(f"{mount}/") for mount in mounts)


def parse_cluster(text: str) -> str | None:
    """The context that `--cluster` names; None for the current one.

    >>> parse_cluster("kubernetes:team-a"), parse_cluster("kubernetes")
    ('team-a', None)
    """
    kind, colon, context = text.partition(":")
    if kind.lower() not in ("kubernetes", "k8s") or (colon and not context.strip()):
        advice = nearest(kind, ["kubernetes"]) if kind else ""
        raise InvalidValue(
            f"Invalid cluster {text!r}: give kubernetes, or kubernetes:CONTEXT for another context than the current "
            f"one. {advice if 'Did' in advice else ''}".rstrip()
        )
    return context.strip() or None


def parse_volumes(text: str) -> tuple[Volume, ...]:
    """`claim_name=c,mount_path=/p`, several of them with semicolons; `host_path=/d` in the place of a claim.

    >>> parse_volumes("claim_name=data,mount_path=/data")
    (Volume(mount_path='/data', claim='data', host_path=None),)
    """
    volumes = tuple(_volume(piece, text) for piece in text.split(";") if piece.strip())
    paths = [volume.mount_path.rstrip("/") for volume in volumes]
    for path in paths:
        if paths.count(path) > 1:
            raise InvalidValue(f"Invalid volume {text!r}: two are mounted at {path}.")
    return volumes


def _volume(piece: str, text: str) -> Volume:
    example = "Give for example claim_name=data,mount_path=/data."
    given: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in piece.split(","))):
        key, equals, value = (word.strip() for word in part.partition("="))
        if not equals or not value:
            raise InvalidValue(
                f"Invalid volume {text!r}: {part!r} is not of the form name=value. {example}"
            )
        if key not in ("claim_name", "host_path", "mount_path"):
            known = nearest(key, ("claim_name", "host_path", "mount_path"))
            raise InvalidValue(f"Invalid volume {text!r}: unknown name {key!r}. {known}")
        if key in given:
            raise InvalidValue(
                f"Invalid volume {text!r}: {key!r} is given twice. Put a semicolon between two volumes."
            )
        given[key] = value
    if "mount_path" not in given:
        raise InvalidValue(
            f"Invalid volume {text!r}: {piece.strip()!r} has no mount_path, where pods find it. {example}"
        )
    if not given["mount_path"].startswith("/") or given["mount_path"] == "/":
        raise InvalidValue(
            f"Invalid volume {text!r}: the mount_path {given['mount_path']!r} is not an absolute path below /. "
            f"{example}"
        )
    if ("claim_name" in given) == ("host_path" in given):
        raise InvalidValue(
            f"Invalid volume {text!r}: {piece.strip()!r} needs one of claim_name and host_path. {example}"
        )
    _check_volume(given, text)
    return Volume(given["mount_path"], given.get("claim_name"), given.get("host_path"))


def _check_volume(given: Mapping[str, str], text: str) -> None:
    path = posixpath.normpath(given["mount_path"])
    if path in _TAKEN or ":" in path or path.startswith("//"):
        raise InvalidValue(
            f"Invalid volume {text!r}: pods cannot have it at {given['mount_path']!r}. Give another mount_path, for "
            "example /data."
        )
    if "claim_name" in given and not _is_name(given["claim_name"]):
        raise InvalidValue(
            f"Invalid volume {text!r}: {given['claim_name']!r} is not a name of a claim. List those of the namespace "
            "with: kubectl get pvc"
        )
    if "host_path" in given and not given["host_path"].startswith("/"):
        raise InvalidValue(
            f"Invalid volume {text!r}: the host_path {given['host_path']!r} is not an absolute path."
        )


def parse_envs(text: str) -> dict[str, str]:
    """`k=v,k2=v2`. What is wrong is said without the values, which may be secrets.

    >>> parse_envs("A=1, B=x=y")
    {'A': '1', 'B': 'x=y'}
    """
    envs: dict[str, str] = {}
    for number, part in enumerate(text.split(","), 1):
        if not part.strip():
            continue
        key, equals, value = part.partition("=")
        key = key.strip()
        if not equals or not _VARIABLE.fullmatch(key):
            raise InvalidValue(
                f"Invalid envs: its part {number} is not of the form NAME=value. "
                "Give for example LOGS=debug,REGION=eu; a value has no commas."
            )
        if key in envs:
            raise InvalidValue(f"Invalid envs: {key} is given twice.")
        envs[key] = value.strip()
    return envs


def parse_priority(name: str, text: str | None) -> tuple[str | None, float]:
    """A priority class, and how much of the pods have it.

    >>> parse_priority("worker_pod_priority", "high=0.5")
    ('high', 0.5)
    """
    if text is None:
        return None, 1.0
    priority, equals, share = (word.strip() for word in text.partition("="))
    if not _is_name(priority):
        raise InvalidValue(
            f"Invalid {name} {text!r}: {priority!r} is not a name of a priority class. "
            "List those of the cluster with: kubectl get priorityclasses"
        )
    if not equals:
        return priority, 1.0
    fraction = parse_float(name, share)
    if not 0 < fraction <= 1:
        raise InvalidValue(
            f"Invalid {name} {text!r}: {share} is not a fraction. Give for example high=0.5."
        )
    return priority, fraction


def _is_name(text: str) -> bool:
    """Whether it can be the name of a Kubernetes object: labels with dots between them."""
    return len(text) <= 253 and all(_LABEL.fullmatch(part) for part in text.split("."))


def _pods(config: JobConfig, role: str) -> Pods:
    names = [f"{role}_resource_request", f"{role}_resource_limit", f"{role}_pod_priority"]
    request, limit, wish = (getattr(config, name) for name in names)
    wanted = parse_resources(names[0], DEFAULT) | parse_resources(names[0], request or "")
    most = wanted | parse_resources(names[1], limit or "")
    for key, amount in wanted.items():
        if key == "cpu" and amount < 0.001:
            raise InvalidValue(
                f"Invalid {names[0]} {request!r}: cpu is below 1m, a thousandth of a processor."
            )
        if key == "memory" and amount < _LEAST_MEMORY:
            raise InvalidValue(
                f"Invalid {names[0]} {request!r}: memory is {amount:g} bytes, in which nothing runs. Give a unit, for "
                "example memory=4096Mi."
            )
        if most[key] < amount:
            raise InvalidValue(
                f"Invalid {names[1]} {limit!r}: {key} is below the {amount:g} that are requested. "
                f"Raise it, or lower it in {names[0]}."
            )
    if wanted.get("gpu", 0) != most.get("gpu", 0) or wanted.get("gpu", 0) % 1:
        raise InvalidValue(
            f"Invalid {names[0]}: graphics cards are given whole and as many as their limit. Give for example gpu=1."
        )
    priority, fraction = parse_priority(names[2], wish)
    if role == "master" and fraction != 1:
        raise InvalidValue(
            f"Invalid {names[2]} {wish!r}: there is one master. Give a name alone, for example high."
        )
    return Pods(
        requests=_quantities(wanted),
        limits=_quantities(most),
        cpus=_millis(wanted["cpu"]) / 1000,
        gpus=wanted.get("gpu", 0),
        priority=priority,
        fraction=fraction,
    )


def _quantities(amounts: Mapping[str, float]) -> dict[str, str]:
    return {
        _KUBERNETES_NAMES[key]: _quantity(key, amount) for key, amount in amounts.items() if amount
    }


def _quantity(key: str, amount: float) -> str:
    if key == "cpu":
        millis = _millis(amount)
        return f"{millis}m" if millis % 1000 else str(millis // 1000)
    if key in ("memory", "disk") and amount % (1 << 20) == 0:
        return f"{int(amount) >> 20}Mi"
    return str(int(amount))


def _millis(cpus: float) -> int:
    return math.ceil(round(cpus * 1000, 3))


def _refuse_contradictions(config: JobConfig) -> None:
    least, most = config.workers
    if most > _MOST_WORKERS:
        raise InvalidValue(
            f"Invalid num_workers {config.num_workers!r}: more than {_MOST_WORKERS:,} are a slip of the keyboard."
        )
    if config.queue and least != most:
        raise InvalidValue(
            f"Invalid num_workers {config.num_workers!r} with --queue: Kueue admits jobs of one size. Give one number."
        )
    if config.queue is not None and not _is_name(config.queue):
        raise InvalidValue(f"Invalid queue {config.queue!r}: it is not a name of a LocalQueue.")
    if config.namespace is not None and not (
        _LABEL.fullmatch(config.namespace) and len(config.namespace) <= 63
    ):
        raise InvalidValue(
            f"Invalid namespace {config.namespace!r}: it has small letters, digits and dashes."
        )
    refuse: dict[str, Any] = {
        "ray_address": "the job has a Ray of its own there",
        "debug": "a debugger is in this process",
    }
    for name, why in refuse.items():
        if getattr(config, name):
            raise InvalidValue(f"Invalid {name} with --cluster: {why}. Give one of them.")
    if config.yaml is not None and config.dry_run:
        raise InvalidValue(
            "--yaml and --dry_run are both given: the first asks no server. Give one."
        )
    _refuse_needless(config)
    if config.distribution_strategy == "Local" and "distribution_strategy" in config.given:
        raise InvalidValue(
            "Invalid distribution_strategy 'Local' with --cluster: jobs there have workers. "
            "Leave it out; --num_workers=1 has one."
        )


_OF_BUILDS = (
    "docker_image_repository",
    "image_base",
    "image_include",
    "extra_pypi_index",
    "docker_base_url",
    "docker_tlscert",
    "docker_tlskey",
    "print_dockerfile",
)


def _refuse_needless(config: JobConfig) -> None:
    """An image that is there is not built."""
    if config.image_name is None:
        return
    if not re.fullmatch(r"[A-Za-z0-9][^\s'\"$`\\]*", config.image_name):
        raise InvalidValue(
            f"Invalid image_name {config.image_name!r}: it is not a name of an image. Give for example "
            "registry.example.com/team/models:1."
        )
    if needless := [name for name in _OF_BUILDS if getattr(config, name)]:
        raise InvalidValue(
            f"{needless[0]} and image_name are both given: nothing is built where there is an image. Give one of them."
        )
