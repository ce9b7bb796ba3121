"""A command, an image, a RayJob, and what KubeRay would make of it: containers in which the job trains.

Containers stand for pods, with the image, the environment, the mounts, Ray's parameters and the entrypoint that the
manifest has. They share this machine's network, and have its packages mounted.
"""

from __future__ import annotations

import json
import socket
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from api_server import ApiServer
from podman_engine import BASE, Podman
from registries import Registries, wait_for

from elasticdl.artifacts.stored_model import find_trained_model
from elasticdl.cli.main import main

pytestmark = [pytest.mark.podman, pytest.mark.slow, pytest.mark.timeout(300)]

MODEL = """
import keras
import tensorflow as tf
from tiny_words import UNITS

def custom_model():
    x = keras.Input((1,), name="x")
    return keras.Model(x, keras.layers.Dense(1)(keras.layers.Dense(UNITS)(x)))

def dataset_fn(dataset, mode, metadata):
    def parse(row):
        numbers = tf.strings.to_number(row)
        return {"x": numbers[:1]} if mode == "prediction" else ({"x": numbers[:1]}, numbers[1:])
    return dataset.map(parse)

def loss(labels, predictions):
    return keras.losses.MeanSquaredError()(labels, predictions)

def optimizer():
    return keras.optimizers.SGD(0.01)
"""


class Pods:
    """The containers of one RayJob."""

    def __init__(self, node: Podman, job: dict[str, Any], claims: dict[str, Path]) -> None:
        self._node, self._claims = node, claims
        self._spec = job["spec"]
        self._name = job["metadata"]["name"]
        self._gcs, self._dashboard = _free_port(), _free_port()
        self._started: list[str] = []

    def run(self) -> str:
        """Start Ray as the manifest says, submit the entrypoint, and return what it printed."""
        cluster = self._spec["rayClusterSpec"]
        head = cluster["headGroupSpec"]
        ports = {"port": self._gcs, "dashboard-port": self._dashboard}
        self._start("head", head["template"], "--head", **head["rayStartParams"], **ports)
        address = f"--address=127.0.0.1:{self._gcs}"
        for group in cluster["workerGroupSpecs"]:
            for number in range(group["replicas"]):
                name = f"{group['groupName']}-{number}"
                self._start(name, group["template"], address, **group["rayStartParams"])
        try:
            submitter = self._container(self._spec["submitterPodTemplate"])
            url = f"http://127.0.0.1:{self._dashboard}"
            submit = (
                f"ray job submit --address {url} -- {self._spec['entrypoint'].replace('$$', '$')}"
            )
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
            *("ray", "start", *flags, *given, "--block", "--disable-usage-stats"),
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


def test_a_model_is_trained_by_the_command_in_pods_of_an_image_of_its_zoo(
    podman: Podman,
    node: Podman,
    registries: Registries,
    server: ApiServer,
    kubeconfig: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    zoo, volume = tmp_path / "zoo", tmp_path / "volume"
    zoo.mkdir()
    volume.mkdir()
    (zoo / "line.py").write_text(MODEL)
    (zoo / "requirements.txt").write_text("tiny-words\n")
    rows = "".join(f"{n / 100},{2 * n / 100}\n" for n in range(200))
    (volume / "line.csv").write_text("x,y\n" + rows)
    there = ["--cluster=kubernetes", "--volume=claim_name=shared,mount_path=/shared", "--detach"]
    assert podman.engine.base_url is not None
    train = [
        "train",
        *there,
        f"--docker_image_repository={registries.open}/team/lines",
        f"--docker_base_url={podman.engine.base_url}",
        f"--image_base={BASE}",
        f"--extra_pypi_index={registries.extra_index}",
        f"--model_zoo={zoo}",
        "--model_def=line.custom_model",
        "--training_data=/shared/line.csv",
        "--output=/shared/it's run",
        "--minibatch_size=20",
        "--num_workers=1",
        "--job_name=lines",
    ]
    assert main(train) == 0, capsys.readouterr().err
    job = server.get("rayjobs", "lines")
    image = job["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["containers"][0][
        "image"
    ]
    assert image.startswith(f"{registries.open}/team/lines@sha256:")
    said = Pods(node, job, {"shared": volume}).run()
    run = volume / "it's run"
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    assert events[-1]["status"] == "completed", said
    assert find_trained_model(str(run)).message.docker_commit_id == image
