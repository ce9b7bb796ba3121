"""A Ray on this machine for one job: on the loopback interface, behind a token of its own, gone at the end.

Several run side by side: each has its own directory and takes ports that are free.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from elasticdl.errors import RunError, reason
from elasticdl.runtime.elastic.nursery import FORKS, Nursery
from elasticdl.runtime.elastic.silence import silent_ray, starting_ray

__all__ = ["own_ray"]

PATIENCE_S = 5.0
"""How long processes may take to end before they are killed."""

LONGEST_TEMPORARY = 24
"""Ray's sockets lie 80 characters deeper, and a socket's path may have about 100."""

# Not 127.0.0.1, for which Ray takes the machine's address in the network.
LOOPBACK = "127.0.0.2" if sys.platform == "linux" else None

UNUSED = ("start_log_monitor", "start_monitor", "start_api_server")
"""What Ray's `Node` starts for people and for clusters that grow: each is a Python process, which takes a second."""


@contextmanager
def own_ray(
    *, num_cpus: int, runtime_env: Mapping[str, Any] | None = None, log_level: str = "INFO"
) -> Iterator[None]:
    """This process is attached to a Ray that ends with the block, however the block ends."""
    environment = dict(runtime_env or {})
    with _directory() as directory, silent_ray(log_level):
        processes: list[Any] = []
        nursery = Nursery(directory, environment.get("env_vars", {})) if FORKS else None
        try:
            if nursery:
                environment["py_executable"] = nursery.command
            _start(directory, num_cpus, environment, log_level)
            yield
        finally:
            started = _started_by_ray()
            try:
                processes += _processes(directory)
                _stop()
            finally:
                if nursery:
                    nursery.end()
                _end([*processes, *_processes(directory)])
                for process in started:
                    process.poll()  # Python warns of those that nobody asked for their end


def _start(directory: Path, num_cpus: int, runtime_env: dict[str, Any], log_level: str) -> None:
    import ray

    token = directory / "token"
    token.touch(mode=0o600)
    token.write_text(secrets.token_hex(32), encoding="ascii")
    variables = {
        # Ray makes up its mind to use a token where nobody says otherwise; this is the job's own.
        "RAY_AUTH_MODE": None,
        "RAY_AUTH_TOKEN": None,
        "RAY_AUTH_TOKEN_PATH": str(token),
        "RAY_ADDRESS": None,
        "RAY_USAGE_STATS_ENABLED": "0",
        # Ray's own processes would go before the training each time that they wake up.
        "RAY_worker_niceness": "0",
        # Nobody would read them.
        "RAY_enable_metrics_collection": "0",
        "RAY_task_events_report_interval_ms": "0",
        "RAY_event_stats": "0",
        # To nobody: the workers of one machine do not ask Ray for resources.
        "RAY_raylet_report_resources_period_ms": "1000",
        "RAY_raylet_check_gc_period_milliseconds": "1000",
        # Under `uv run` Ray would make a new environment for each worker; they are to share this one.
        "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    }
    with starting_ray(variables), _fewer_processes(log_level):
        _forget_token()
        try:
            ray.init(
                address="local",
                num_cpus=num_cpus,
                include_dashboard=False,
                object_store_memory=_store_bytes(),
                runtime_env=runtime_env or None,
                log_to_driver=log_level == "DEBUG",
                logging_level=logging.INFO if log_level == "DEBUG" else logging.CRITICAL,
                _node_ip_address=LOOPBACK,
                _temp_dir=str(directory / "r"),
            )
        except Exception as error:
            why = " ".join(reason(error).split())[:300]
            raise RunError(
                f"Ray could not be started on this machine: {why}. See what it says with --log_level=DEBUG, "
                "or attach to one that runs: --ray_address=auto."
            ) from error


@contextmanager
def _fewer_processes(log_level: str) -> Iterator[None]:
    """Of Ray's processes only those that the job needs: there is no public switch for it."""
    from ray._private.node import Node

    unused = () if log_level == "DEBUG" else UNUSED
    kept = {name: getattr(Node, name) for name in unused if hasattr(Node, name)}
    for name in kept:
        setattr(Node, name, lambda self, **_: None)
    try:
        yield
    finally:
        for name, method in kept.items():
            setattr(Node, name, method)


def _stop() -> None:
    import ray

    try:
        ray.shutdown()
    finally:
        _forget_token()


def _started_by_ray() -> list[subprocess.Popen[bytes]]:
    from ray._private import worker

    by_kind = getattr(getattr(worker, "_global_node", None), "all_processes", {})
    return [info.process for infos in by_kind.values() for info in infos]


def _forget_token() -> None:
    """Ray reads its token and whether one is needed once a process; the next Ray has another one."""
    _raylet = importlib.import_module("ray._raylet")

    if hasattr(_raylet, "AuthenticationTokenLoader"):
        _raylet.AuthenticationTokenLoader.instance().reset_cache()
        _raylet.Config.initialize("")


@contextmanager
def _directory() -> Iterator[Path]:
    """A directory that nobody else may enter: Ray opens the one it is given to everybody."""
    root = tempfile.gettempdir()
    if len(root) > LONGEST_TEMPORARY and os.access("/tmp", os.W_OK):
        root = "/tmp"
    directory = Path(tempfile.mkdtemp(prefix="elasticdl-", dir=root))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _store_bytes() -> int:
    """Room for objects: states that newcomers take over, in shared memory as far as there is some."""
    import psutil  # type: ignore[import-untyped]  # comes with Ray

    size = min(2 << 30, int(psutil.virtual_memory().total) // 5)
    with contextlib.suppress(OSError):
        size = min(size, shutil.disk_usage("/dev/shm").free * 3 // 4)
    return max(size, 80 << 20)  # what Ray needs at least


def _processes(directory: Path) -> list[Any]:
    """This Ray's processes: our children that were told of the directory, and all below them."""
    import psutil

    found: list[Any] = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if any(str(directory) in word for word in child.cmdline()):
                found += [child, *child.children(recursive=True)]
    return found


def _end(processes: list[Any]) -> None:
    """Wait for processes to end; kill those that do not."""
    import psutil

    _, alive = psutil.wait_procs(processes, timeout=PATIENCE_S)
    for process in alive:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(alive, timeout=PATIENCE_S)
