"""A cluster for readers of pages on Kubernetes. The API server is that of the tests; what pods would run is run here.

No engine builds images for a reader: what it would be given is made, and its answers are those of a build that works.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from elasticdl.runtime.kubernetes.docker_engine import Connection, DockerEngine
from processes import python

from .blocks import ROOT

sys.path.append(str(ROOT / "tests" / "kubernetes"))

from api_server import ApiServer, api_server
from kuberay import KubeRay

NAMESPACE = "elasticdl"
MOUNT = "/elasticdl"
RAY = "--ray_address=auto"
"""Of KubeRay's pods. There are none: each command starts a Ray of its own."""


class Pods:
    """Runs the command of each job as its head pod would, and commands inside of that pod.

    Args:
      server: the cluster.
      volume: the directory that the pods see as the volume.
      works: whether there is any work in the pods; without, each job is completed at once.
    """

    def __init__(self, server: ApiServer, volume: Path, works: bool) -> None:
        self._server, self._volume, self._works = server, volume, works
        self._kuberay = KubeRay(server, NAMESPACE)
        self._drivers: list[threading.Thread] = []
        self._processes: list[subprocess.Popen[str]] = []
        server.put("namespaces", {"metadata": {"name": NAMESPACE}})
        server.on_create = self._take
        server.on_exec = self._exec

    def end(self) -> None:
        for process in self._processes:
            process.terminate()
        for driver in self._drivers:
            driver.join()

    def _take(self, name: str) -> None:
        """A job that was created: each look at it finds it further."""
        steps = [lambda: None, lambda: self._kuberay.starts(name), lambda: self._run(name)]
        self._kuberay.plays(name, steps if self._works else self._kuberay.usual(name))

    def _run(self, name: str) -> None:
        job = self._server.get("rayjobs", name, NAMESPACE)
        self._kuberay.runs(name)
        process = self._start(shlex.split(job["spec"]["entrypoint"]), self._environment(job))
        self._processes.append(process)
        driver = threading.Thread(target=self._drive, args=(name, process))
        self._drivers.append(driver)
        driver.start()

    def _drive(self, name: str, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process:
            for line in process.stdout:
                self._kuberay.prints(name, line.rstrip("\n"))
        if name not in {job["metadata"]["name"] for job in self._server.all("rayjobs", NAMESPACE)}:
            return  # it was deleted meanwhile
        if process.returncode:
            said = f"Job entrypoint command failed with exit code {process.returncode}"
            self._kuberay.fails(name, said)
        else:
            self._kuberay.completes(name)

    def _environment(self, job: dict[str, Any]) -> dict[str, str]:
        head = job["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]
        return {each["name"]: each["value"] for each in head["containers"][0]["env"]}

    def _exec(self, pod: str, argv: list[str]) -> tuple[int, str]:
        process = self._start(argv, {})
        output, _ = process.communicate()
        return process.returncode, output

    def _start(self, argv: list[str], environment: Mapping[str, str]) -> subprocess.Popen[str]:
        program, *words = argv
        assert program == "elasticdl", f"a pod would run {shlex.join(argv)}"
        return python(
            *("-m", "elasticdl", *(self._here(word) for word in words if word != RAY)),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **environment},
        )

    def _here(self, word: str) -> str:
        """What a pod finds at a place, at its place on this machine."""
        word = word.replace("=/model_zoo", f"={ROOT / 'model_zoo'}")
        return word.replace(f"{MOUNT}/", f"{self._volume}/")


class Engine:
    """A Docker engine that has built everything before, and a registry that takes everything."""

    digest = f"sha256:{'5e' * 32}"

    def __init__(self) -> None:
        self.hooks: dict[str, list[object]] = {"response": []}

    def build(self, fileobj: IO[bytes], **options: Any) -> Iterator[dict[str, str]]:
        with tarfile.open(fileobj=fileobj) as context:
            dockerfile = context.extractfile("Dockerfile")
            assert dockerfile is not None
            steps = dockerfile.read().decode().splitlines()
        for number, step in enumerate(steps, 1):
            yield {"stream": f"Step {number}/{len(steps)} : {step}\n"}
        yield {"stream": f"Successfully tagged {options['tag']}\n"}

    def push(self, repository: str, tag: str, **options: Any) -> Iterator[dict[str, str]]:
        yield {"status": f"{tag}: digest: {self.digest} size: 2000"}


@contextmanager
def connected(engine: DockerEngine, say: Callable[[str], None]) -> Iterator[Connection]:
    yield Connection(engine, Engine())


@contextmanager
def cluster(directory: Path, works: bool) -> Iterator[Path]:
    """A cluster with pods that run; its kubeconfig."""
    volume = directory / "volume"
    volume.mkdir(parents=True)
    with api_server() as server:
        pods = Pods(server, volume, works)
        try:
            kubeconfig = server.kubeconfig(directory / "kubeconfig", namespace=NAMESPACE)
            kubeconfig.write_text(kubeconfig.read_text().replace(": tests\n", ": my-cluster\n"))
            yield kubeconfig
        finally:
            pods.end()
