"""A whole run in MLflow: one run for all its sittings, one below it for the test data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from elasticdl.experiments import stages
from elasticdl.experiments.stages import Experiment
from elasticdl.tracking.events import read_events
from processes import ForkedSender
from runs.kill_and_go_on import kill_and_go_on
from runs.project_files import write_project, write_run

pytestmark = pytest.mark.usefixtures("tensorflow")


@pytest.fixture(autouse=True)
def _forked_sender(monkeypatch: pytest.MonkeyPatch) -> None:
    """For experiments of this process; a command's own loads MLflow as ever."""
    monkeypatch.setattr(stages, "MlflowSender", ForkedSender)


def client(root: Path) -> Any:
    from mlflow import MlflowClient

    return MlflowClient(f"sqlite:///{root}/mlflow.db")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_killed_run_is_one_run_in_mlflow(tmp_path: Path) -> None:
    root = write_project(tmp_path / "p")
    run = write_run(root, epochs=12)
    command = ["run", "--run_name=one", f"--project_root={root}", "--log_level=WARNING"]
    outcome = kill_and_go_on(run, *command, seed=3, kills=2)
    assert (outcome.kills, outcome.code) == (2, 0), outcome.said
    mlflow = client(root)
    (experiment,) = [e for e in mlflow.search_experiments() if e.name == "points"]
    runs = {r.info.run_name: r for r in mlflow.search_runs([experiment.experiment_id])}
    assert set(runs) == {"one", "one_evaluation"}
    training, evaluation = runs["one"], runs["one_evaluation"]
    assert (run / "run_id.txt").read_text().strip() == training.info.run_id
    assert training.info.status == evaluation.info.status == "FINISHED"
    assert training.data.params["config_model_builder.units"] == "8"
    assert training.data.params["code version"] == "none"
    assert training.data.tags["session_type"] == "training"
    assert evaluation.data.tags["mlflow.parentRunId"] == training.info.run_id
    history = mlflow.get_metric_history(training.info.run_id, "val_loss")
    logged = {e["epoch"]: e["val_loss"] for e in epochs(run)}
    assert sorted(m.step for m in history) == list(range(12))
    assert {m.step: m.value for m in history} == pytest.approx(logged)
    assert {"validation_loss", "validation_ce"} <= set(training.data.metrics)
    assert {"test_loss", "test_ce"} <= set(evaluation.data.metrics)
    names = {file.path for file in mlflow.list_artifacts(training.info.run_id)}
    assert names == {"exported", "reports"}
    exported = {file.path for file in mlflow.list_artifacts(training.info.run_id, "exported")}
    assert {"exported/savedmodel", "exported/config.yaml", "exported/model.keras"} <= exported


def epochs(run: Path) -> list[dict[str, Any]]:
    return [e for e in read_events(run / "events.jsonl") if e["event"] == "epoch"]


@pytest.mark.filterwarnings("ignore")
def test_dead_server_is_told_once_and_gets_all_later(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    root = write_project(tmp_path / "p")
    run = write_run(root)
    dead = "http://user:s3cret@127.0.0.1:9"
    result = Experiment(root, "one", mlflow_tracking_uri=dead, log_level="WARNING").run()
    assert result.status == "completed"
    said = capfd.readouterr().err
    assert said.count("MLflow") == 1 and "s3cret" not in said
    assert "s3cret" not in "".join(p.read_text() for p in run.glob("*.json*"))

    Experiment(root, "one", log_level="WARNING").run()
    mlflow = client(root)
    (experiment,) = [e for e in mlflow.search_experiments() if e.name == "points"]
    runs = {r.info.run_name: r for r in mlflow.search_runs([experiment.experiment_id])}
    history = mlflow.get_metric_history(runs["one"].info.run_id, "val_loss")
    assert sorted(m.step for m in history) == [0, 1, 2]


def test_a_failed_run_is_not_finished(tmp_path: Path) -> None:
    root = write_project(tmp_path / "p", models=RAISING)
    write_run(root)
    with pytest.raises(OSError, match="mine"):
        Experiment(root, "one", log_level="ERROR").run()
    mlflow = client(root)
    (experiment,) = [e for e in mlflow.search_experiments() if e.name == "points"]
    (run,) = mlflow.search_runs([experiment.experiment_id])
    assert run.info.status == "FAILED"


RAISING = """
import keras
from abstractions import ModelBuilderBase


class Stop(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if epoch == 1:
            raise OSError("mine")


class Builder(ModelBuilderBase):
    def get_compiled_model(self):
        model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(3, "softmax")])
        model.compile("adam", "sparse_categorical_crossentropy")
        return model

    def get_callbacks(self):
        return [Stop()]
"""
