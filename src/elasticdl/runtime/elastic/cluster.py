"""The Ray that a job runs on: one of its own for as long as the job lasts, or one that is there already."""

from __future__ import annotations

import importlib
import logging
import os
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from elasticdl.errors import InvalidValue, MissingPackage, RunError, reason
from elasticdl.runtime.elastic.own_ray import own_ray
from elasticdl.runtime.elastic.silence import (
    environment,
    held_stderr,
    silent_ray,
    starting_ray,
)

__all__ = ["Cluster", "check_address", "ray_cluster", "way_to"]

ANSWER_S = 5.0
"""How long a host may take to accept a connection: Ray itself would try for minutes."""

FORMS = "Give auto, host:port or ray://host:port."
INSTEAD = "leave --ray_address out for a Ray of the job's own"


@dataclass(frozen=True)
class Cluster:
    """A Ray that this process is attached to.

    Attributes:
      is_own: it was started for this job and ends with it.
      address: where others find it.
      runtime_env: what each actor must be given as its `runtime_env`; empty where all have it anyway.
    """

    is_own: bool
    address: str
    runtime_env: Mapping[str, Any] = field(default_factory=dict)

    def nodes(self) -> list[tuple[str, float]]:
        """The nodes that are there now: their ids and how many processors they offer."""
        return [(node["NodeID"], node["Resources"].get("CPU", 0.0)) for node in _alive()]

    @property
    def node(self) -> str | None:
        """The node that this process is on. Behind `ray://` it may be on another machine than all of them."""
        ray = import_ray()
        if ray.util.client.ray.is_connected():
            return None
        return str(ray.get_runtime_context().get_node_id())


@contextmanager
def ray_cluster(
    address: str | None,
    *,
    num_cpus: int,
    runtime_env: Mapping[str, Any] | None = None,
    log_level: str = "INFO",
) -> Iterator[Cluster]:
    """A Ray to run on. One of its own is gone at the end: no process and no file is left of it.

    Args:
      address: `auto`, `host:port` or `ray://host:port` of a cluster; None starts a Ray on this machine.
        Where this process is attached to a Ray already, it is that one, and it stays attached.
      num_cpus: how many processors a Ray of its own offers.
      runtime_env: Ray's runtime environment of the job, see `zoo_files.zoo_environment`.
      log_level: with DEBUG Ray's own lines are shown.

    Raises:
      MissingPackage: Ray is not installed.
      InvalidValue: the address is of no known form, or there is no Ray on this machine to attach to.
      RunError: nobody answers there, or it cannot be used from here.
    """
    ray = import_ray()
    if ray.is_initialized():
        yield Cluster(False, _address(ray, address), _uploaded(runtime_env or {}))
    elif address in (None, "local"):
        with own_ray(num_cpus=num_cpus, runtime_env=runtime_env, log_level=log_level):
            yield Cluster(True, _address(ray))
    else:
        assert address is not None
        _check_answer(address)
        with _attached(ray, address, runtime_env, log_level):
            yield Cluster(False, _address(ray, address))


def check_address(address: str | None) -> None:
    """Refuse what is no address of a Ray, whether somebody is there or not."""
    if address is not None and address not in ("auto", "local"):
        _parts(address)


def way_to(address: str | None) -> str:
    """What is being done, for who waits for it."""
    return "Starting Ray" if address is None else f"Attaching to {address}"


def import_ray() -> Any:
    """Ray, or how to get it."""
    try:
        with environment({}):
            return importlib.import_module("ray")
    except ImportError as error:
        raise MissingPackage(
            "Workers run on Ray, which is not installed. Install it with: pip install 'elasticdl[ray]'"
        ) from error


@contextmanager
def _attached(
    ray: Any, address: str, runtime_env: Mapping[str, Any] | None, log_level: str
) -> Iterator[None]:
    shown = log_level == "DEBUG"
    with silent_ray(log_level):
        with starting_ray(), held_stderr() as held:
            try:
                ray.init(
                    address=address,
                    runtime_env=dict(runtime_env or {}) or None,
                    log_to_driver=shown,
                    logging_level=logging.INFO if shown else logging.CRITICAL,
                )
            except Exception as error:
                ray.shutdown()
                held.seek(0)
                raise _explained(address, error, held.read().decode(errors="replace")) from error
        try:
            yield
        finally:
            ray.shutdown()


def _uploaded(runtime_env: Mapping[str, Any]) -> dict[str, Any]:
    """The environment as an actor may be given it: Ray sends directories only for a whole job itself."""
    from ray._private.runtime_env.working_dir import upload_working_dir_if_needed

    with tempfile.TemporaryDirectory(prefix="elasticdl-") as scratch:
        return dict(
            upload_working_dir_if_needed(
                dict(runtime_env), include_gitignore=False, scratch_dir=scratch
            )
        )


def _check_answer(address: str) -> None:
    """Say at once that nobody is there."""
    if address == "auto":
        return
    scheme, host, port = _parts(address)
    try:
        socket.create_connection((host, port), timeout=ANSWER_S).close()
    except OSError as error:
        start = "ray start --head --ray-client-server-port" if scheme else "ray start --head --port"
        raise RunError(
            f"No Ray answers at {address}: {reason(error)}. Check the address, start one there with "
            f"'{start}={port}', or {INSTEAD}."
        ) from error
    if not _speaks_grpc(host, port):
        raise RunError(
            f"No Ray answers at {address}: what listens there is something else. The port of 'ray start' is "
            "6379 if nothing else was said, that of ray:// is 10001; 8265 is the dashboard's."
        )


def _speaks_grpc(host: str, port: int) -> bool:
    """Whether it could be Ray. With certificates only Ray itself can tell."""
    if os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"):
        return True
    try:
        import grpc
    except ImportError:
        return True
    with grpc.insecure_channel(f"[{host}]:{port}" if ":" in host else f"{host}:{port}") as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=ANSWER_S)
        except grpc.FutureTimeoutError:
            return False
    return True


def _parts(address: str) -> tuple[str, str, int]:
    """The scheme (`ray` or none), host and port of an address."""
    scheme, _, rest = address.rpartition("://")
    if scheme not in ("", "ray"):
        raise InvalidValue(f"Invalid ray_address {address!r}: {scheme}:// is not Ray's. {FORMS}")
    try:
        parts = urlsplit(f"//{rest}")
        host, port = parts.hostname, parts.port or (10001 if scheme else None)
    except ValueError:
        host, port = None, None
    if not host or not port or parts.path or parts.username:
        raise InvalidValue(f"Invalid ray_address {address!r}: it is no host and port. {FORMS}")
    return scheme, host, port


def _explained(address: str, error: Exception, printed: str) -> Exception:
    """What Ray says when it cannot attach, raised or only printed, with what to do."""
    text = " ".join(reason(error).split())
    if address == "auto" and isinstance(error, ConnectionError):
        return InvalidValue(
            "Invalid ray_address 'auto': there is no Ray on this machine. Start one with "
            f"'ray start --head', give its address, or {INSTEAD}."
        )
    if "ersion mismatch" in text:
        return RunError(
            f"The Ray at {address} has other versions than this Python: {text}. "
            "Install the same ones here and there: pip install 'ray==VERSION'."
        )
    if type(error).__name__ == "AuthenticationError" or "Unauthenticated" in printed:
        return RunError(
            f"The Ray at {address} refused this process: it needs the cluster's token. Set "
            "RAY_AUTH_TOKEN_PATH to the file that holds it, and RAY_AUTH_MODE=token."
        )
    if isinstance(error, ImportError):
        return MissingPackage(
            f"{address} needs Ray's client. Install it with: pip install 'ray[client]'"
        )
    return RunError(f"Cannot attach to the Ray at {address}: {text}. Check it, or {INSTEAD}.")


def _address(ray: Any, asked: str | None = None) -> str:
    if asked and "://" in asked:
        return asked
    return str(ray.get_runtime_context().gcs_address)


def _alive() -> list[dict[str, Any]]:
    return [node for node in import_ray().nodes() if node["Alive"]]
