"""What MLflow knows of one run that went well, read back from the database in the project."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from elasticdl.tracking.events import read_events
from elasticdl.tracking.mlflow import MlflowSink

from .conftest import Project

PARAMS = {"project name": "mnist", "config_a.b": "1", "config_text": "x" * 7000}
PARAMS |= {f"config_many.k{number}": "é" * 3000 for number in range(150)}


@pytest.fixture(scope="module")
def sink(shared_project: Project) -> MlflowSink:
    """A run with all that a run may tell."""
    directory = shared_project.directory("first")
    for name in ("exported/savedmodel/graph.pb", "validation_report.csv", "plots/loss.png"):
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(name)
    elsewhere = shared_project.root / "eval_reports" / "eval_report.csv"
    elsewhere.parent.mkdir()
    elsewhere.write_text("test")
    events, sink = shared_project.sink(params=PARAMS, tags={"team": "vision"})
    events.emit("run_started", command="train", step=0)
    for epoch in range(3):
        odd = {"val_precision@5": 0.5, "f1 (macro)": 0.25, "nothing": float("nan"), "none": None}
        events.emit("epoch", epoch=epoch, step=10 * epoch, loss=1 / (epoch + 1), **odd)
    exported = {"metric": "val_loss", "value": 0.5, "epoch": 2, "step": 20}
    events.emit("exported", path=str(directory / "exported"), **exported)
    reports = [str(directory / "validation_report.csv"), str(directory / "plots" / "loss.png")]
    events.emit("report", name="validation", points=5, metrics={"ce": 0.75}, files=reports)
    reports = [str(elsewhere), str(directory / "plots" / "loss.png")]
    events.emit("report", name="test", points=4, metrics={"ce": 0.5}, files=reports)
    events.emit("run_ended", status="completed")
    events.close()
    return sink


@pytest.fixture(scope="module")
def run(shared_project: Project, sink: MlflowSink) -> Any:
    return shared_project.client().get_run(sink.run_id)


@pytest.fixture(scope="module")
def evaluation(shared_project: Project, sink: MlflowSink) -> Any:
    (found,) = [run for run in shared_project.runs() if run.info.run_id != sink.run_id]
    return found


def artifacts(project: Project, run_id: str, folder: str) -> set[str]:
    found: set[str] = set()
    for entry in project.client().list_artifacts(run_id, folder):
        found |= artifacts(project, run_id, entry.path) if entry.is_dir else {entry.path}
    return found


def test_run_has_name_status_and_tags(run: Any, shared_project: Project) -> None:
    assert (run.info.run_name, run.info.status) == ("first", "FINISHED")
    assert run.data.tags["session_type"] == "training"
    assert run.data.tags["team"] == "vision"
    assert shared_project.told == []


def test_parameters_are_all_there_and_cut_to_what_mlflow_takes(run: Any) -> None:
    assert set(run.data.params) == set(PARAMS)
    assert run.data.params["config_a.b"] == "1"
    assert len(run.data.params["config_text"]) == 6000


def test_metrics_have_the_epoch_and_the_time_of_the_event(
    run: Any, shared_project: Project
) -> None:
    events = read_events(shared_project.directory("first") / "events.jsonl")
    history = shared_project.client().get_metric_history(run.info.run_id, "loss")
    assert [(point.step, point.value, point.timestamp) for point in history] == [
        (event["epoch"], event["loss"], round(1000 * event["time"]))
        for event in events
        if event["event"] == "epoch"
    ]


def test_names_that_mlflow_refuses_are_mended_and_no_numbers_left_out(run: Any) -> None:
    assert set(run.data.metrics) == {"loss", "val_precision_at_5", "f1_macro", "validation_ce"}


def test_export_is_an_artifact_with_its_metric_in_tags(run: Any, shared_project: Project) -> None:
    assert artifacts(shared_project, run.info.run_id, "exported") == {
        "exported/savedmodel/graph.pb"
    }
    tags = {name: value for name, value in run.data.tags.items() if name.startswith("exported.")}
    assert tags == {
        "exported.metric": "val_loss",
        "exported.value": "0.5",
        "exported.epoch": "2",
        "exported.step": "20",
    }


def test_validation_report_is_part_of_the_training_run(run: Any, shared_project: Project) -> None:
    assert run.data.metrics["validation_ce"] == 0.75
    assert artifacts(shared_project, run.info.run_id, "reports") == {
        "reports/validation_report.csv",
        "reports/plots/loss.png",
    }


def test_test_report_is_a_run_below_it(run: Any, evaluation: Any, shared_project: Project) -> None:
    assert (evaluation.info.run_name, evaluation.info.status) == ("first_evaluation", "FINISHED")
    assert evaluation.data.tags["mlflow.parentRunId"] == run.info.run_id
    assert evaluation.data.tags["session_type"] == "evaluation"
    assert evaluation.data.params == run.data.params
    assert evaluation.data.metrics == {"test_ce": 0.5}
    found = artifacts(shared_project, evaluation.info.run_id, "reports")
    assert found == {"reports/eval_report.csv", "reports/plots/loss.png"}


def test_artifacts_are_beside_the_database(run: Any, shared_project: Project) -> None:
    assert run.info.artifact_uri.startswith((shared_project.root / "mlartifacts").as_uri())


def test_run_directory_knows_the_run_and_what_was_sent(
    run: Any, evaluation: Any, shared_project: Project
) -> None:
    directory: Path = shared_project.directory("first")
    assert (directory / "run_id.txt").read_text() == run.info.run_id
    state = json.loads((directory / "mlflow.json").read_text())
    assert state["run_id"] == run.info.run_id
    assert state["evaluation_run_id"] == evaluation.info.run_id
    assert state["address"] == shared_project.address
    assert state["lines_sent"] == len((directory / "events.jsonl").read_text().splitlines())
