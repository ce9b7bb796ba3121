"""A real engine, podman behind Docker's API, with its own images, in a directory of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from base_image import PACKAGES, write_base_image
from registries import Registries, started, wait_for

from elasticdl.runtime.kubernetes.image import DockerEngine

BASE = "localhost/base:1"
LIMITS = ("--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024")
PROGRAMS = ("podman", "docker-registry", "runc")

_SETTINGS = """
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "none"
tmp_dir = "{directory}/libpod"
[network]
network_config_dir = "{directory}/networks"
"""
_STORAGE = """
[storage]
driver = "{driver}"
graphroot = "{directory}/images"
runroot = "{directory}/running"
"""


@dataclass(frozen=True)
class Podman:
    """podman with images of its own."""

    directory: Path
    environment: dict[str, str]

    @property
    def engine(self) -> DockerEngine:
        return DockerEngine(base_url=f"unix://{self.directory}/podman.sock")

    def do(self, *words: str | Path) -> str:
        """The output of a command that is to succeed."""
        command = [str(word) for word in ("podman", *words)]
        done = subprocess.run(command, env=self.environment, capture_output=True, timeout=240)
        assert done.returncode == 0, (done.stdout + done.stderr).decode(errors="replace")
        return done.stdout.decode()

    def run(
        self, image: str, *command: str, mounts: Sequence[str] = (), more: Sequence[str] = ()
    ) -> str:
        """The output of a container that has this machine's packages; `more` are flags of podman's."""
        packages = f"{sysconfig.get_path('purelib')}:{PACKAGES}:ro"
        volumes = [f"--volume={mount}" for mount in (packages, *mounts)]
        return self.do("run", "--rm", "--network=host", *LIMITS, *volumes, *more, image, *command)


def podman_in(directory: Path, insecure: Sequence[str]) -> Podman:
    """podman with everything below a directory. It speaks plain HTTP with the registries that are `insecure`."""
    directory.mkdir()
    registries = "".join(
        f'[[registry]]\nlocation = "{address}"\ninsecure = true\n' for address in insecure
    )
    (directory / "registries.conf").write_text(registries)
    (directory / "containers.conf").write_text(_SETTINGS.format(directory=directory))
    environment = os.environ | {
        "BUILDAH_ISOLATION": "chroot",
        "CONTAINERS_CONF": str(directory / "containers.conf"),
        "CONTAINERS_REGISTRIES_CONF": str(directory / "registries.conf"),
        "CONTAINERS_STORAGE_CONF": str(directory / "storage.conf"),
        "TMPDIR": str(directory),
    }
    for driver in ("overlay", "vfs"):  # the second needs nothing of the kernel, and more space
        (directory / "storage.conf").write_text(_STORAGE.format(directory=directory, driver=driver))
        done = subprocess.run(["podman", "info"], env=environment, capture_output=True, text=True)
        if done.returncode == 0:
            return Podman(directory, environment)
        shutil.rmtree(directory / "images", ignore_errors=True)
    pytest.skip(f"podman does not run here: {done.stderr}")


@contextmanager
def _cleared(podman: Podman) -> Iterator[Podman]:
    try:
        yield podman
    finally:
        # Containers that a failing test left, and mounts that would keep the directory.
        subprocess.run(
            ["podman", "rm", "--all", "--force", "--time=0"],
            env=podman.environment,
            capture_output=True,
        )


@pytest.fixture(scope="session")
def registries() -> Iterator[Registries]:
    """The registries of the tests, and an index of packages."""
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        pytest.skip(f"{', '.join(missing)} not installed: apt install podman docker-registry runc")
    with (
        tempfile.TemporaryDirectory(prefix="elasticdl_", ignore_cleanup_errors=True) as directory,
        Registries(Path(directory)) as registries,
    ):
        yield registries


@pytest.fixture(scope="session")
def podman(registries: Registries) -> Iterator[Podman]:
    """The engine of who submits, with a base image."""
    with _cleared(podman_in(registries.directory / "here", registries.addresses)) as podman:
        socket = podman.directory / "podman.sock"
        service = ["podman", "system", "service", "--time=0", f"unix://{socket}"]
        with started(service, podman.directory / "log", podman.environment):
            archive = podman.directory / "base.tar"
            write_base_image(archive, registries.index)
            podman.do("import", "--quiet", archive, BASE)
            archive.unlink()
            wait_for(socket.exists, "podman's socket")
            yield podman


@pytest.fixture(scope="session")
def node(registries: Registries) -> Iterator[Podman]:
    """A machine of the cluster: it has nothing, and gets images from the registry."""
    with _cleared(podman_in(registries.directory / "node", registries.addresses)) as podman:
        yield podman
