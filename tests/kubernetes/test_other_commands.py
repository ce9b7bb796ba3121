"""Experiments and SQL on a cluster: checked here, and the same commands there."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from crd import complaints

from elasticdl.cli.main import main

ON = ["--cluster=kubernetes", "--image_name=registry.example.com/team/all:1"]
VOLUME = "--volume=claim_name=data,mount_path=/data"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.delenv("ELASTICDL_DB", raising=False)
    assert main(["new", "demo"]) == 0
    return tmp_path / "demo"


def manifest_of(words: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert main([*words, *ON, "--yaml=-"]) == 0
    manifest = yaml.safe_load(capsys.readouterr().out)
    assert complaints(manifest) == []
    assert isinstance(manifest, dict)
    return manifest


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main([*words, *ON, "--yaml=-"]) == 2
    return capsys.readouterr().err


def experiment(project: Path, *more: str) -> list[str]:
    return ["run", "--run_name=baseline", f"--project_root={project}", *more]


def test_an_experiment_runs_there_with_its_project_as_zoo(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = experiment(
        project,
        "--data_dir=s3://bucket/data",
        "--runs_dir=s3://bucket/runs",
        "--set=epochs=2",
        "--num_workers=2:3",
        "--overwrite",
    )
    manifest = manifest_of(words, capsys)
    assert shlex.split(manifest["spec"]["entrypoint"]) == [
        "elasticdl",
        "run",
        "--run_name=baseline",
        "--project_root=/model_zoo",
        "--data_dir=s3://bucket/data",
        "--runs_dir=s3://bucket/runs",
        "--eval_reports_dir=s3://bucket/runs/eval_reports",
        "--set=epochs=2",
        "--no_mlflow",
        "--stage=all",
        "--log_level=INFO",
        "--overwrite",
        "--distribution_strategy=AllreduceStrategy",
        "--num_workers=2:3",
        "--worker_resource_request=cpu=1",
        "--ray_address=auto",
    ]
    annotations = manifest["metadata"]["annotations"]
    assert annotations["elasticdl/output"] == "s3://bucket/runs/baseline"
    assert manifest["metadata"]["name"].startswith("baseline-")


def test_a_password_of_mlflows_address_is_in_no_manifest(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = experiment(
        project,
        "--data_dir=/data",
        "--runs_dir=/data/runs",
        VOLUME,
        "--mlflow_tracking_uri=https://me:hunter2@mlflow.example.com",
    )
    manifest = manifest_of(words, capsys)
    assert "hunter2" not in str(manifest)
    head = manifest["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]
    names = [each["name"] for each in head["containers"][0]["env"]]
    assert "MLFLOW_TRACKING_URI" in names
    assert "--no_mlflow" not in manifest["spec"]["entrypoint"]


def test_mlflows_address_is_a_flag_and_its_login_a_secret(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "hunter2")
    words = experiment(project, "--data_dir=s3://b/d", "--runs_dir=s3://b/r")
    manifest = manifest_of([*words, "--mlflow_tracking_uri=http://mlflow:5000"], capsys)
    assert "--mlflow_tracking_uri=http://mlflow:5000" in manifest["spec"]["entrypoint"]
    assert "MLFLOW_TRACKING_TOKEN" in str(manifest) and "hunter2" not in str(manifest)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--data_dir=s3://b/d"], "A runs_dir must be given with --cluster"),
        (["--data_dir=data", "--runs_dir=s3://b/r"], "Invalid data_dir 'data': it is a path of"),
        (["--runs_dir=runs", "--data_dir=s3://b/d"], "Invalid runs_dir 'runs'"),
        (["--check"], "Invalid --check with --cluster: a check runs here."),
        (["--ray_address=auto"], "Invalid ray_address with --cluster"),
        (["--distribution_strategy=Local"], "Invalid distribution_strategy 'Local' with --cluster"),
        (
            ["--runs_dir=s3://b/r", "--data_dir=s3://b/d", "--mlflow_tracking_uri=sqlite:///x.db"],
            "it is a file, which each pod would have for itself",
        ),
        (["--set=epochz=2", "--runs_dir=s3://b/r"], "epochz"),
    ],
)
def test_an_experiment_that_cannot_run_there_is_refused_here(
    more: list[str], said: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused(experiment(project, *more), capsys)


STATEMENT = "SELECT * FROM customers TO TRAIN DNNClassifier LABEL left_us INTO leaving;"
DB = "--db=postgresql://me:hunter2@db.example.com/shop"


def test_sql_runs_in_one_pod_when_no_workers_are_asked_for(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = manifest_of(["sql", STATEMENT, DB, "--models=s3://bucket/models"], capsys)
    assert shlex.split(manifest["spec"]["entrypoint"]) == [
        "elasticdl",
        "sql",
        "--models=s3://bucket/models",
        "--log_level=INFO",
        "--",
        STATEMENT,
    ]
    assert manifest["spec"]["rayClusterSpec"]["workerGroupSpecs"] == []
    assert "hunter2" not in str(manifest)


def test_sql_that_begins_with_a_comment_is_a_statement_there_too(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "-- what costs more than $$1$$\nSELECT 1 AS one"
    file = project / "statements.sql"
    file.write_text(text)
    manifest = manifest_of(["sql", f"--file={file}", DB, "--models=s3://b/m"], capsys)
    _, *words = shlex.split(manifest["spec"]["entrypoint"].replace("$$", "$"))
    assert words[-1] == text
    local = [word for word in words if not word.startswith("--models")]
    assert main(local) == 0  # in DuckDB, here
    assert "one" in capsys.readouterr().out


def test_sql_with_workers_puts_rows_on_a_volume(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["sql", STATEMENT, DB, "--models=/data/models", "--num_workers=2", VOLUME]
    entrypoint = shlex.split(manifest_of(words, capsys)["spec"]["entrypoint"])
    assert entrypoint[-6:-2] == [
        "--num_workers=2",
        "--worker_resource_request=cpu=1",
        "--ray_address=auto",
        "--spool=/data",
    ]
    assert "without a volume" in refused(
        ["sql", STATEMENT, DB, "--models=s3://b/models", "--num_workers=2"], capsys
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([STATEMENT, "--models=s3://b/m"], "A db must be given with --cluster"),
        ([STATEMENT, DB], "Invalid models 'models': it is a path of this machine"),
        ([STATEMENT, "--db=duckdb:///shop.db", "--models=s3://b/m"], "Invalid db 'shop.db'"),
        (["SELECT * FROM t TO TRAIN", DB, "--models=s3://b/m"], "SELECT * FROM t TO TRAIN"),
        ([" ", DB, "--models=s3://b/m"], "There is no statement to run."),
        ([STATEMENT, DB, "--models=s3://b/m", "--spool=/x"], "Invalid --spool with --cluster"),
    ],
)
def test_sql_that_cannot_run_there_is_refused_here(
    words: list[str], said: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = refused(["sql", *words], capsys)
    assert said in shown
    assert "hunter2" not in shown


def test_flags_of_a_cluster_without_one_are_refused(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*experiment(project), "--namespace=ml"]) == 2
    assert "--namespace is for --cluster=kubernetes. Add it." in capsys.readouterr().err
    assert main(["sql", "SELECT 1", "--spot"]) == 2
    assert "--spot is for --cluster=kubernetes. Add it." in capsys.readouterr().err
