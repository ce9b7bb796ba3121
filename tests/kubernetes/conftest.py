"""A cluster for the tests: an API server on loopback, a kubeconfig for it, and somebody who plays KubeRay."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from api_server import ApiServer, api_server
from crd import MISSING, crd_path
from kuberay import KubeRay, rayjob
from podman_engine import node, podman, registries  # noqa: F401

from elasticdl.runtime.kubernetes.client import Cluster, connect


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """An API server with nothing in it but the namespace `default`."""
    with api_server() as server:
        yield server


@pytest.fixture
def kubeconfig(server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kubeconfig for the server, which the commands of this test find."""
    path = server.kubeconfig(tmp_path / "kubeconfig")
    monkeypatch.setenv("KUBECONFIG", str(path))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    return path


@pytest.fixture
def cluster(server: ApiServer, kubeconfig: Path) -> Iterator[Cluster]:
    with connect() as cluster:
        yield cluster


@pytest.fixture
def kuberay(server: ApiServer) -> KubeRay:
    """The operator, which does what the test tells it."""
    return KubeRay(server)


@pytest.fixture
def manifest() -> Callable[..., dict[str, Any]]:
    """Makes small RayJobs that KubeRay would take."""
    return rayjob


@pytest.fixture
def ctrl_c() -> Iterator[Callable[[str], None]]:
    """Presses Ctrl-C, whatever it is called with; also where the tests run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda line: signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def crd() -> Path:
    """KubeRay's schema of a RayJob."""
    path = crd_path()
    if path is None:
        pytest.skip(MISSING)
    return path
