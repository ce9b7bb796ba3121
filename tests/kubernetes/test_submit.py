"""A command that is sent to a cluster, from its words to what it prints and leaves there."""

from __future__ import annotations

import base64
import shlex
from pathlib import Path
from typing import Any

import pytest
from api_server import ApiServer
from kuberay import KubeRay

import elasticdl
from elasticdl.artifacts.message import IMAGE_VARIABLE
from elasticdl.artifacts.stored_model import find_trained_model
from elasticdl.cli.main import main
from elasticdl.errors import InvalidValue
from elasticdl.runtime.kubernetes import follow

ROOT = Path(__file__).resolve().parents[2]
IMAGE = "registry.example.com/team/mnist:1"
TRAIN = [
    "train",
    "--cluster=kubernetes",
    f"--image_name={IMAGE}",
    "--model_def=mnist.mnist_functional.custom_model",
    "--training_data=s3://bucket/train",
    "--output=s3://bucket/run",
    "--job_name=mnist",
]


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cluster is asked as often as it answers."""
    monkeypatch.setitem(follow.follow.__kwdefaults__ or {}, "poll_s", 0.01)


def job_of(server: ApiServer, name: str = "mnist") -> dict[str, Any]:
    return server.get("rayjobs", name, "default")


def test_a_job_is_submitted_followed_and_its_output_shown(
    server: ApiServer,
    kuberay: KubeRay,
    kubeconfig: Path,
    crd: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    kuberay.plays("mnist", kuberay.usual("mnist", "epoch 1/1 done  loss 0.5"))
    assert main([*TRAIN, "--num_workers=2:4"]) == 0
    out, err = capsys.readouterr()
    assert "epoch 1/1 done  loss 0.5" in out
    assert "Submitted the job mnist" in err
    assert "Come back with: elasticdl jobs logs -f mnist --cluster=kubernetes" in err
    assert "The job mnist is running." in err
    assert "Dashboard: http://127.0.0.1:" in err
    assert "completed" in out and "s3://bucket/run" in out
    groups = job_of(server)["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    assert [(g["minReplicas"], g["maxReplicas"]) for g in groups] == [(2, 4)]


def test_a_job_that_fails_says_why_and_where_to_look(
    kuberay: KubeRay, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = kuberay.usual("mnist", "Error: no records")
    kuberay.plays("mnist", [*steps[:-1], lambda: kuberay.fails("mnist")])
    assert main(TRAIN) == 1
    out, err = capsys.readouterr()
    assert "Error: no records" in out
    assert "Job entrypoint command failed with exit code 1" in err
    assert "elasticdl jobs logs -f mnist --cluster=kubernetes" in err


def test_who_does_not_want_to_wait_is_told_how_to_come_back(
    server: ApiServer, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*TRAIN, "--detach"]) == 0
    out = capsys.readouterr().out
    assert "submitted" in out and "elasticdl jobs status mnist" in out
    assert job_of(server)["spec"]["entrypoint"].startswith("elasticdl train ")


def test_a_job_gets_a_name_of_its_own_when_none_is_given(
    server: ApiServer, kubeconfig: Path
) -> None:
    words = [word for word in TRAIN if "job_name" not in word]
    assert main([*words, "--detach"]) == 0
    assert main([*words, "--detach"]) == 0
    names = [job["metadata"]["name"] for job in server.all("rayjobs")]
    assert len(set(names)) == 2 and all(name.startswith("mnist-") for name in names)


def test_a_dry_run_asks_the_server_and_leaves_nothing(
    server: ApiServer, kubeconfig: Path, crd: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*TRAIN, "--dry_run"]) == 0
    assert "Nothing was submitted." in capsys.readouterr().out
    assert server.all("rayjobs") == []


def test_a_manifest_is_written_without_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    file = tmp_path / "job.yaml"
    assert main([*TRAIN, f"--yaml={file}"]) == 0
    assert f"kubectl create -f {file}" in capsys.readouterr().out
    assert file.read_text().startswith("apiVersion: ray.io/v1\n")
    assert main([*TRAIN, f"--yaml={tmp_path / 'none' / 'job.yaml'}"]) != 0
    assert "No such file or directory" in capsys.readouterr().err


def test_a_dockerfile_is_printed_without_an_engine(capsys: pytest.CaptureFixture[str]) -> None:
    words = [word for word in TRAIN if "image_name" not in word]
    assert main([*words, f"--model_zoo={ROOT / 'model_zoo'}", "--print_dockerfile"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("FROM ")
    assert "/model_zoo" in out.splitlines()[-1] or "COPY" in out


def test_pods_need_an_image(capsys: pytest.CaptureFixture[str], kubeconfig: Path) -> None:
    words = [word for word in TRAIN if "image_name" not in word]
    assert main([*words, f"--model_zoo={ROOT / 'model_zoo'}"]) == 2
    assert "Pods need an image. Give --docker_image_repository" in capsys.readouterr().err


def test_nothing_is_submitted_when_the_image_cannot_be_made(
    server: ApiServer, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word for word in TRAIN if "image_name" not in word]
    more = ["--docker_image_repository=localhost:1/x", "--docker_base_url=tcp://127.0.0.1:1"]
    assert main([*words, f"--model_zoo={ROOT / 'model_zoo'}", *more]) == 1
    assert "127.0.0.1:1" in capsys.readouterr().err
    assert server.all("rayjobs") == []


def test_objects_of_this_process_are_refused() -> None:
    with pytest.raises(InvalidValue) as refused:
        elasticdl.train(
            lambda: None,
            ([[1.0]], [[1.0]]),
            cluster="kubernetes",
            image_name=IMAGE,
            output="s3://b/o",
        )
    assert "Invalid model, training_data with cluster" in str(refused.value)


def test_python_submits_as_the_command_line_does(server: ApiServer, kubeconfig: Path) -> None:
    result = elasticdl.train(
        "mnist.mnist_functional.custom_model",
        "s3://bucket/train",
        cluster="kubernetes",
        image_name=IMAGE,
        output="s3://bucket/run",
        job_name="mnist",
        detach=True,
    )
    assert result.status == "submitted"
    assert job_of(server)["metadata"]["annotations"]["elasticdl/output"] == "s3://bucket/run"


def test_a_database_is_told_by_a_secret_that_goes_with_the_job(
    server: ApiServer, kubeconfig: Path, crd: Path
) -> None:
    address = "postgresql://me:hunter2@db.example.com/shop"
    statement = "SELECT * FROM t TO TRAIN DNNClassifier LABEL y INTO m;"
    words = ["sql", statement, f"--db={address}", "--models=s3://bucket/models", "--detach"]
    assert main([*words, "--cluster=kubernetes", f"--image_name={IMAGE}", "--job_name=shop"]) == 0
    job, (secret,) = job_of(server, "shop"), server.all("secrets")
    assert "hunter2" not in str(job)
    assert _texts(secret)["ELASTICDL_DB"] == address
    assert secret["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]


def test_who_may_not_create_secrets_is_told_before_anything_is_made(
    server: ApiServer, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.denied.add(("create", "secrets"))
    words = ["sql", "SELECT 1", "--db=postgresql://me:hunter2@db/shop", "--models=s3://b/m"]
    assert main([*words, "--cluster=kubernetes", f"--image_name={IMAGE}", "--dry_run"]) == 1
    assert "You may not create Secrets in the namespace 'default'" in capsys.readouterr().err


def test_what_was_asked_of_the_cluster_is_kept_for_who_goes_on(
    server: ApiServer, kubeconfig: Path
) -> None:
    given = ["--worker_resource_request=cpu=2,memory=8Gi", "--envs=A=it's", "--spot=true"]
    assert main([*TRAIN, *given, "--num_workers=1:3", "--detach"]) == 0
    flags = shlex.split(job_of(server)["metadata"]["annotations"]["elasticdl/flags"])
    assert set(flags) == {*given, "--num_workers=1:3"}


def test_a_job_whose_secret_is_refused_is_taken_away(
    server: ApiServer, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.refuse(403, "secrets is forbidden", method="POST", path="/secrets")
    words = ["sql", "SELECT 1", "--db=postgresql://me:hunter2@db/shop", "--models=s3://b/m"]
    assert main([*words, "--cluster=kubernetes", f"--image_name={IMAGE}", "--detach"]) == 1
    assert server.all("rayjobs") == []
    assert "hunter2" not in capsys.readouterr().err


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that was trained in an image, as pods tell it."""
    output = tmp_path_factory.mktemp("trained") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(IMAGE_VARIABLE, "registry.example.com/zoo@sha256:" + "c" * 64)
        elasticdl.train(
            model_zoo=str(ROOT / "model_zoo"),
            model_def="mnist.mnist_functional.custom_model",
            data=str(ROOT / "model_zoo" / "data" / "digits" / "test"),
            output=str(output),
            max_step=1,
            log_level="ERROR",
        )
    return output


def test_predict_runs_in_the_image_that_the_model_was_trained_in(
    trained: Path, server: ApiServer, kubeconfig: Path
) -> None:
    image = find_trained_model(str(trained)).message.docker_commit_id
    assert image.endswith("c" * 64)
    volume = f"--volume=claim_name=data,mount_path={trained.parent}"
    words = ["predict", f"--trained_model={trained}", "--data=s3://b/d", "--output=s3://b/o"]
    assert main([*words, volume, "--cluster=kubernetes", "--job_name=predict", "--detach"]) == 0
    head = job_of(server, "predict")["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]
    assert head["spec"]["containers"][0]["image"] == image


def _texts(secret: dict[str, Any]) -> dict[str, str]:
    plain = dict(secret.get("stringData") or {})
    encoded = secret.get("data") or {}
    return plain | {key: base64.b64decode(value).decode() for key, value in encoded.items()}
