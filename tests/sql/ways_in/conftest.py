"""What the tests of the ways in share: a server in this process, and SQLFlow's own client in another."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from elasticdl.sql.server import ServerConfig, SqlServer

from .fake_session import FakeSession

# Tests of other files fork while this process has gRPC's threads; what they start need not know of them.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")

CLIENT = Path(sys.prefix) / "sqlflow_client"


class HasAddress(Protocol):
    address: str


Serve = Callable[..., SqlServer]
SqlflowClient = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers on free ports of this machine, and stops them."""
    servers: list[SqlServer] = []

    def start(open_session: Any = FakeSession, **config: Any) -> SqlServer:
        server = SqlServer(ServerConfig(**{"port": 0, **config}), open_session)
        server.start()
        servers.append(server)
        return server

    FakeSession.hanging.clear()
    FakeSession.ended.clear()
    yield start
    for server in servers:
        server.stop(grace_s=1)


def client_environment(server: HasAddress, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SQLFLOW_")}
    return {
        **kept,
        "PYTHONPATH": str(CLIENT),
        # SQLFlow's compiled file is older than what protobuf's C part takes.
        "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python",
        "SQLFLOW_SERVER": server.address,
        "GRPC_VERBOSITY": "NONE",
        **more,
    }


@pytest.fixture
def sqlflow_client(tmp_path: Path) -> SqlflowClient:
    """Runs Python code with SQLFlow's client from PyPI."""
    if not CLIENT.is_dir():
        pytest.skip("the sqlflow client is not installed: see the Makefile")

    def run(server: SqlServer, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-W", "ignore", *args],
            env=client_environment(server, **environment),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run
