"""What KubeRay would make of a RayJob, in containers: they stand for pods.

They have the image, the environment, the mounts, Ray's parameters and the entrypoint that the manifest has. They share
this machine's network, and have its packages mounted.
"""

from __future__ import annotations

import socket
import urllib.request
from pathlib import Path
from typing import Any

from podman_engine import Podman
from registries import wait_for

AGENT = "dashboard-agent-listen-port"
UNNEEDED = ("--disable-usage-stats", "--include-log-monitor=false")
"""Parts of Ray are left out that a job does not need here: each is a process of its own."""


class Pods:
    """The containers of one RayJob."""

    def __init__(self, node: Podman, job: dict[str, Any], claims: dict[str, Path]) -> None:
        self._node, self._claims = node, claims
        self._spec = job["spec"]
        self._name = job["metadata"]["name"]
        self._gcs, self._dashboard, self._agent = _free_port(), _free_port(), _free_port()
        self._started: list[str] = []

    def run(self) -> str:
        """Start Ray as the manifest says, submit the entrypoint, and return what it printed."""
        cluster = self._spec["rayClusterSpec"]
        head = cluster["headGroupSpec"]
        ports = {"port": self._gcs, "dashboard-port": self._dashboard}
        ports |= {"ray-client-server-port": _free_port(), AGENT: self._agent}
        flags = ("--head", "--no-monitor")
        self._start("head", head["template"], *flags, **head["rayStartParams"], **ports)
        address = f"--address=127.0.0.1:{self._gcs}"
        for group in cluster["workerGroupSpecs"]:
            for number in range(group["replicas"]):
                name = f"{group['groupName']}-{number}"
                port = {AGENT: _free_port()}
                self._start(name, group["template"], address, **group["rayStartParams"], **port)
        try:
            submitter = self._container(self._spec["submitterPodTemplate"])
            url = f"http://127.0.0.1:{self._dashboard}"
            submit = (
                f"ray job submit --address {url} -- {self._spec['entrypoint'].replace('$$', '$')}"
            )
            # As KubeRay's probes do: a job is given to the agent of the head.
            health = f"http://127.0.0.1:{self._agent}/api/local_raylet_healthz"
            wait_for(lambda: _answers(health), "Ray's agent", 120)
            wait_for(lambda: _answers(f"{url}/api/version"), "Ray's dashboard", 120)
            return self._node.run(submitter["image"], "sh", "-ce", submit)
        finally:
            self._node.do("rm", "--force", "--time=0", *self._started)

    def _start(self, name: str, template: dict[str, Any], *flags: str, **params: Any) -> None:
        one = self._container(template)
        full = f"{self._name}-{name}"
        self._started.append(full)
        given = [f"--{key}={value}" for key, value in params.items()]
        self._node.run(
            one["image"],
            *("ray", "start", *flags, *given, *UNNEEDED, "--block"),
            mounts=self._mounts(template),
            more=("--detach", f"--name={full}", *_environment(one)),
        )

    def _container(self, template: dict[str, Any]) -> dict[str, Any]:
        (one,) = template["spec"]["containers"]
        assert isinstance(one, dict)
        return one

    def _mounts(self, template: dict[str, Any]) -> list[str]:
        volumes = {
            volume["name"]: self._claims[volume["persistentVolumeClaim"]["claimName"]]
            for volume in template["spec"].get("volumes", ())
        }
        mounts = self._container(template).get("volumeMounts", ())
        return [f"{volumes[mount['name']]}:{mount['mountPath']}" for mount in mounts]


def _environment(container: dict[str, Any]) -> list[str]:
    return [f"--env={each['name']}={each['value']}" for each in container["env"]]


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("", 0))
        return int(found.getsockname()[1])
