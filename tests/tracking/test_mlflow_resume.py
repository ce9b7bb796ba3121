"""A run that is gone on with: the same MLflow run, each epoch once, and what has changed written down."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from .conftest import Project

Until = Callable[[Callable[[], Any]], Any]

pytestmark = pytest.mark.timeout(60)


def test_resumed_run_is_the_same_and_has_each_epoch_once(project: Project) -> None:
    first = project.run({0: 1.0, 1: 0.5}, params={"epochs": "2", "seed": "1"})
    second = project.run({1: 0.4, 2: 0.3}, step=10, params={"epochs": "3", "seed": "1", "new": "n"})
    assert second.run_id == first.run_id
    assert project.losses(first.run_id) == [(0, 1.0), (1, 0.5), (2, 0.3)]
    run = project.client().get_run(first.run_id)
    assert run.info.status == "FINISHED"
    assert run.data.params == {"epochs": "2", "seed": "1", "new": "n"}
    changed = {k: v for k, v in run.data.tags.items() if k.startswith("changed.")}
    assert changed == {"changed.epochs": "3"}
    assert project.told == []


def test_run_that_is_trained_anew_has_the_new_epochs_too(project: Project) -> None:
    first = project.run({0: 1.0, 1: 0.5})
    project.run({0: 1.0, 1: 0.25})  # epoch 0 came out the same
    assert project.losses(first.run_id) == [(0, 1.0), (1, 0.25), (1, 0.5)]


def evaluate(project: Project, *reports: dict[str, float]) -> None:
    """Evaluations of a run that is done, of one command."""
    events, _ = project.sink()
    for metrics in reports:
        events.emit("run_started", command="evaluate", step=10)
        for name in ("validation", "test"):
            events.emit("report", name=name, points=3, metrics=metrics, files=[])
        events.emit("run_ended", status="completed")
    events.close()


def history(project: Project, name: str) -> list[tuple[int, float]]:
    return sorted(
        (point.step, point.value)
        for run in project.runs()
        for point in project.client().get_metric_history(run.info.run_id, name)
    )


def test_report_that_came_out_the_same_is_there_once(project: Project) -> None:
    evaluate(project, {"loss": 1 / 3, "acc": 0.5})
    evaluate(project, {"loss": 1 / 3, "acc": 0.5}, {"loss": 0.25, "acc": 0.5})
    losses = [(0, 0.25), (0, 1 / 3)]
    assert history(project, "test_loss") == history(project, "validation_loss") == losses
    assert history(project, "test_acc") == history(project, "validation_acc") == [(0, 0.5)]
    assert project.told == []


def test_reports_that_nobody_took_are_there_once_when_somebody_does(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "mlflow", None)
        evaluate(project, {"loss": 0.5}, {"loss": 0.5})
    evaluate(project, {"loss": 0.5})
    assert history(project, "test_loss") == history(project, "validation_loss") == [(0, 0.5)]


def test_line_that_a_crash_cut_short_takes_nothing_else_with_it(project: Project) -> None:
    first = project.run({0: 1.0})
    with (project.directory("first") / "events.jsonl").open("a") as file:
        file.write('{"time":1.0,"event":"epo')
    project.run({1: 0.5}, step=10)
    assert project.losses(first.run_id) == [(0, 1.0), (1, 0.5)]


def test_what_was_sent_just_before_a_crash_is_not_there_twice(project: Project) -> None:
    first = project.run({0: 1.0, 1: 0.5})
    file = project.directory("first") / "mlflow.json"
    state = json.loads(file.read_text())  # as it is while MLflow makes the run
    file.write_text(json.dumps({**state, "run_id": "", "lines_sent": 0}))
    second = project.run({2: 0.25}, step=10)
    assert second.run_id == first.run_id
    assert project.losses(first.run_id) == [(0, 1.0), (1, 0.5), (2, 0.25)]


def test_deleted_run_is_made_anew_with_all_epochs_and_told(project: Project) -> None:
    first = project.run({0: 1.0})
    project.client().delete_run(first.run_id)
    second = project.run({1: 0.5}, step=10)
    assert second.run_id != first.run_id
    assert project.losses(second.run_id) == [(0, 1.0), (1, 0.5)]
    assert (project.directory("first") / "run_id.txt").read_text() == second.run_id
    (told,) = project.told
    assert str(first.run_id) in told and "deleted" in told


def test_deleted_experiment_is_restored_and_told(project: Project) -> None:
    first = project.run({0: 1.0})
    client = project.client()
    client.delete_experiment(client.get_experiment_by_name("mnist").experiment_id)
    project.run({1: 0.5}, step=10)
    assert client.get_experiment_by_name("mnist").lifecycle_stage == "active"
    assert project.losses(first.run_id) == [(0, 1.0), (1, 0.5)]
    assert "mnist" in project.told[0] and "restored" in project.told[0]


def test_run_id_of_another_program_is_taken_up(project: Project) -> None:
    client = project.client()
    run = client.create_run(client.create_experiment("mnist"))
    (project.directory("first") / "run_id.txt").write_text(f"{run.info.run_id}\n")
    assert project.run({0: 1.0}).run_id == run.info.run_id


def test_copied_run_directory_is_a_run_of_its_own(project: Project) -> None:
    first = project.run({0: 1.0})
    for name in ("mlflow.json", "run_id.txt", "events.jsonl"):
        content = (project.directory("first") / name).read_text()
        (project.directory("second") / name).write_text(content)
    second = project.run({1: 0.5}, "second", step=10)
    assert second.run_id != first.run_id
    assert project.losses(first.run_id) == [(0, 1.0)]
    assert project.losses(second.run_id) == [(0, 1.0), (1, 0.5)]


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from elasticdl.tracking.mlflow import MlflowSender
from tracking.conftest import Project
events, sink = Project(Path(sys.argv[1]), sys.argv[2]).sink(sender=MlflowSender())
events.emit("run_started", command="train", step=0)
events.emit("epoch", epoch=0, step=10, loss=1.0)
sink._is_greeted.wait()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_killed_run_is_sent_and_is_not_finished(project: Project, until: Until) -> None:
    tests = os.path.dirname(os.path.dirname(__file__))
    command = [sys.executable, "-c", KILLED, str(project.root), project.address, tests]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    state = project.directory("first") / "mlflow.json"
    until(lambda: state.exists() and json.loads(state.read_text())["lines_sent"] == 2)
    (run,) = project.runs()
    until(lambda: project.client().get_run(run.info.run_id).info.status == "KILLED")
    assert project.losses(run.info.run_id) == [(0, 1.0)]
    assert project.run({1: 0.5}, step=10).run_id == run.info.run_id
    assert project.losses(run.info.run_id) == [(0, 1.0), (1, 0.5)]


def test_statuses_of_runs_that_did_not_end_well(project: Project) -> None:
    begun = {
        status: project.sink(f"run_{status}") for status in ("stopped", "failed", "preempted", "")
    }
    for status, (events, _) in begun.items():
        events.emit("run_started", command="train", step=0)
        if status:
            events.emit("run_ended", status=status)
    for events, _ in begun.values():
        events.close()
    client = project.client()
    statuses = {s: client.get_run(sink.run_id).info.status for s, (_, sink) in begun.items()}
    assert statuses == {
        "stopped": "FINISHED",
        "failed": "FAILED",
        "preempted": "KILLED",
        "": "KILLED",
    }


def test_two_runs_share_a_database_that_is_not_there_yet(project: Project) -> None:
    (project.root / "mlflow.db").unlink()
    begun = [project.sink(name) for name in ("first", "second")]
    for events, _ in begun:
        events.emit("run_started", command="train", step=0)
        events.emit("epoch", epoch=0, step=10, loss=1.0)
        events.emit("run_ended", status="completed")
    for events, sink in begun:
        events.close()
        assert project.losses(sink.run_id) == [(0, 1.0)]
    assert {run.info.run_name for run in project.runs()} == {"first", "second"}
    assert project.told == []
