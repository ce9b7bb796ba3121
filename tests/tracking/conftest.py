"""Runs that are tracked by MLflow, and what it knows of them afterwards."""

from __future__ import annotations

import logging
import os
import shutil
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from elasticdl.storage import place
from elasticdl.tracking.events import EventFile, Events
from elasticdl.tracking.mlflow import MlflowSink, default_tracking_uri
from processes import ForkedSender

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
# A server would start eight processes more, for jobs that no test gives it.
os.environ["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = "false"


@dataclass
class Project:
    """A project's directory, the runs in it, and all that its user is told."""

    root: Path
    address: str
    experiment: str = "mnist"
    told: list[str] = field(default_factory=list)

    def directory(self, run_name: str) -> Path:
        directory = self.root / "runs" / run_name
        directory.mkdir(parents=True, exist_ok=True)
        return directory

    def sink(
        self, run_name: str = "first", params: Mapping[str, str] | None = None, **options: Any
    ) -> tuple[Events, MlflowSink]:
        directory = self.directory(run_name)
        path = directory / "events.jsonl"
        file = EventFile(path)
        given: dict[str, Any] = {
            "run_directory": place(directory),
            "events": path,
            "tracking_uri": self.address,
            "experiment": self.experiment,
            "run_name": run_name,
            "params": params or {},
            "tags": {},
            "warn": self.told.append,
            **options,
        }
        if "sender" not in given:
            given["sender"] = ForkedSender()
        sink = MlflowSink(**given)
        return Events(file, sink), sink

    def run(
        self, losses: Mapping[int, float], run_name: str = "first", step: int = 0, **options: Any
    ) -> MlflowSink:
        """A run that is completed, with one epoch for each loss."""
        events, sink = self.sink(run_name, **options)
        events.emit("run_started", command="train", step=step)
        for epoch, loss in losses.items():
            events.emit("epoch", epoch=epoch, step=10 * epoch + 10, loss=loss)
        events.emit("run_ended", status="completed")
        events.close()
        return sink

    def client(self) -> Any:
        return make_client(self.address)

    def runs(self) -> list[Any]:
        """All runs of the experiment, the earliest first."""
        client = self.client()
        experiment = client.get_experiment_by_name(self.experiment)
        found = client.search_runs([experiment.experiment_id], order_by=["start_time"])
        return list(found)

    def losses(self, run_id: str | None) -> list[tuple[int, float]]:
        history = self.client().get_metric_history(run_id, "loss")
        return sorted((point.step, point.value) for point in history)


def make_client(address: str) -> Any:
    with warnings.catch_warnings():  # MLflow's own remarks on its own packages
        warnings.simplefilter("ignore")
        from mlflow.tracking import MlflowClient

        logging.getLogger("mlflow").setLevel(logging.ERROR)
        logging.getLogger("alembic").setLevel(logging.ERROR)
        return MlflowClient(tracking_uri=address)


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with MLflow's tables: it takes seconds to make them."""
    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    make_client(f"sqlite:///{path}")
    return path


@pytest.fixture
def project(tmp_path: Path, empty_database: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return make_project(tmp_path / "my project", empty_database)


@pytest.fixture(scope="module")
def shared_project(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Project:
    return make_project(tmp_path_factory.mktemp("shared"), empty_database)


def make_project(root: Path, empty_database: Path) -> Project:
    root.mkdir(exist_ok=True)
    shutil.copy(empty_database, root / "mlflow.db")
    return Project(root, default_tracking_uri(root))


@pytest.fixture
def until() -> Callable[[Callable[[], Any]], Any]:
    """Asks again and again until the answer is something; pytest's own limit ends it otherwise."""
    import threading

    def ask(question: Callable[[], Any]) -> Any:
        while not (answer := question()):
            threading.Event().wait(0.05)
        return answer

    return ask
