"""Real servers of object storage on loopback: S3's kind, and Google's."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import fsspec
import pytest


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def server(command: list[str], log: Path, ready: str) -> Iterator[None]:
    """A process that runs, from when its log says that it is ready."""
    with log.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)
    try:
        while ready not in log.read_text():
            assert process.poll() is None, log.read_text()
            threading.Event().wait(0.05)
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # with all that it has started
        process.wait()


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with server(command, tmp_path_factory.mktemp("s3") / "log", "Running on"):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="session")
def gcs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = free_port()
    program = str(Path(sys.executable).with_name("gcp-storage-emulator"))
    command = [program, "start", "--host=127.0.0.1", f"--port={port}", "--in-memory"]
    with server(command, tmp_path_factory.mktemp("gcs") / "log", "services started"):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def bucket(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of an empty bucket: what a user's environment says of it is set."""
    for name, value in {
        "AWS_ENDPOINT_URL": s3_server,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    urllib.request.urlopen(
        urllib.request.Request(f"{s3_server}/moto-api/reset", method="POST")
    ).close()
    fsspec.filesystem("s3").clear_instance_cache()
    fs = fsspec.filesystem("s3")
    fs.mkdir("my-bucket")
    yield "s3://my-bucket"
    fs.clear_instance_cache()


@pytest.fixture
def google_bucket(gcs_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", gcs_server)
    monkeypatch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")  # asks for credentials
    fsspec.filesystem("gs").clear_instance_cache()
    fs = fsspec.filesystem("gs")
    name = f"lake-{uuid.uuid4().hex[:8]}"
    fs.mkdir(name)
    yield f"gs://{name}"
    fs.clear_instance_cache()
