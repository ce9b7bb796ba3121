"""Images by a real engine and in a real registry: they hold what they should, fail in words, train in containers."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from api_server import ApiServer
from podman_engine import BASE, Podman
from pods import Pods
from registries import PASSWORD, USER, Registries

from elasticdl.artifacts.stored_model import find_trained_model
from elasticdl.cli.main import main
from elasticdl.errors import RunError
from elasticdl.runtime.kubernetes.docker_engine import connected
from elasticdl.runtime.kubernetes.image import ImagePlan, build_and_push
from elasticdl.runtime.kubernetes.push import push

pytestmark = pytest.mark.podman

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
        return {"x": numbers[:1]}, numbers[1:]
    return dataset.map(parse)

def loss(labels, predictions):
    return keras.losses.MeanSquaredError()(labels, predictions)

def optimizer():
    return keras.optimizers.SGD(0.01)
"""
LISTING = "import json, os; print(json.dumps([f'{d}/{f}' for d, _, names in os.walk('/model_zoo') for f in names]))"


@dataclass
class Built:
    """An image that was built and pushed, and what was said."""

    zoo: Path
    image: str
    said: list[str]


@pytest.fixture(autouse=True)
def _nobody_is_logged_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))


@pytest.fixture(scope="module")
def built(
    podman: Podman, registries: Registries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Built]:
    zoo = tmp_path_factory.mktemp("zoo")
    (zoo / "model.py").write_text(MODEL)
    (zoo / "requirements.txt").write_text("tiny-words\n")
    (zoo / ".git").mkdir()
    for name in (".git/config", ".env", "server.pem", "service-account.json"):
        (zoo / name).write_text("secret")
    (zoo / "large.recordio").write_bytes(b"0" * (2 << 20))
    said: list[str] = []
    yield Built(zoo, built_and_pushed(podman, registries, zoo, said=said), said)


def built_and_pushed(
    podman: Podman,
    registries: Registries,
    zoo: Path,
    said: list[str] | None = None,
    include: tuple[str, ...] = (),
) -> str:
    plan = ImagePlan(base=BASE, zoo=zoo, extra_index=registries.extra_index, include=include)
    say = (said if said is not None else []).append
    return build_and_push(plan, f"{registries.open}/team/models", "my-job", podman.engine, say)


def pushed(podman: Podman, image: str, registry: str) -> str:
    """What is built already, to another registry."""
    with connected(podman.engine, print) as connection:
        repository = f"{registry}/team/models"
        connection.client.tag(image, repository, "1")
        return f"{repository}@{push(connection, repository, '1', print)}"


def test_the_image_is_named_by_its_digest_and_the_log_was_told(
    built: Built, registries: Registries
) -> None:
    repository, digest = built.image.split("@")
    assert repository == f"{registries.open}/team/models"
    assert digest.startswith("sha256:") and len(digest) == 71
    assert f"Pushed {built.image}" in built.said
    assert any("Successfully installed tiny-words-1.0" in line for line in built.said)


def test_only_the_last_layer_is_built_again_when_a_model_file_changes(
    built: Built, podman: Podman, registries: Registries
) -> None:
    (built.zoo / "model.py").write_text(f"{MODEL}\nWIDER = True\n")
    said: list[str] = []
    image = built_and_pushed(podman, registries, built.zoo, said=said)
    steps = [n for n, line in enumerate(said) if line.startswith("STEP ")]
    anew = [said[n] for n in steps[1:] if "Using cache" not in said[n + 1]]
    assert [step.partition(": ")[2] for step in anew] == ["COPY model_zoo /model_zoo"]
    assert image != built.image


def test_secrets_and_large_files_stay_here_and_it_is_said(built: Built, podman: Podman) -> None:
    files = json.loads(podman.run(built.image, "python", "-c", LISTING))
    assert sorted(files) == ["/model_zoo/model.py", "/model_zoo/requirements.txt"]
    assert built.said[0] == (
        "Not in the image: 4 files of the model zoo that look like data or secrets: .env, large.recordio, "
        "server.pem and 1 more. To take one: --image_include=PATTERN"
    )


def test_a_file_is_in_the_image_when_it_is_asked_for(
    built: Built, podman: Podman, registries: Registries
) -> None:
    image = built_and_pushed(podman, registries, built.zoo, include=("*.recordio",))
    files = json.loads(podman.run(image, "python", "-c", LISTING))
    assert "/model_zoo/large.recordio" in files
    assert "/model_zoo/.env" not in files


def test_pip_says_why_when_requirements_do_not_install(
    podman: Podman, registries: Registries, tmp_path: Path
) -> None:
    (tmp_path / "requirements.txt").write_text("tiny-words>=3\n")
    with pytest.raises(RunError, match="No matching distribution found for tiny-words>=3") as error:
        built_and_pushed(podman, registries, tmp_path)
    assert "Mend requirements.txt in the model zoo" in str(error.value)


def test_a_registry_that_is_not_there_is_named(
    built: Built, podman: Podman, registries: Registries
) -> None:
    with pytest.raises(RunError, match="connection refused") as error:
        pushed(podman, built.image, registries.absent)
    assert f"Check that the registry {registries.absent} is reached" in str(error.value)


def test_a_registry_that_refuses_takes_the_image_after_a_login(
    built: Built, podman: Podman, registries: Registries
) -> None:
    with pytest.raises(RunError, match=f"docker login {registries.locked}"):
        pushed(podman, built.image, registries.locked)
    auth = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    config = Path(os.environ["DOCKER_CONFIG"], "config.json")
    config.parent.mkdir()
    config.write_text(json.dumps({"auths": {registries.locked: {"auth": auth}}}))
    assert pushed(podman, built.image, registries.locked).startswith(registries.locked)


def test_a_push_that_breaks_half_way_is_an_error(
    built: Built, podman: Podman, registries: Registries
) -> None:
    with pytest.raises(RunError, match="Nothing was submitted"):
        pushed(podman, built.image, registries.breaking)
    assert registries.has_broken_off


@pytest.mark.slow
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
