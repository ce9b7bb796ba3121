"""A real MLflow server on loopback: while it is there, before it is there, and with a run directory in a bucket."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from elasticdl.storage import place
from elasticdl.tracking.events import read_events
from object_stores import free_port, server

from .conftest import Project

Until = Callable[[Callable[[], Any]], Any]

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def mlflow_server(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Iterator[int]:
    """The port of a server with an empty database."""
    home = tmp_path_factory.mktemp("server")
    (home / "mlflow.db").write_bytes(empty_database.read_bytes())
    port = free_port()
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--workers", "1"]
    command += ["--port", str(port), "--backend-store-uri", f"sqlite:///{home / 'mlflow.db'}"]
    command += ["--artifacts-destination", str(home / "artifacts")]
    with server(command, home / "log", "Application startup complete"):
        yield port


class Door:
    """A port that leads to a server once it is opened."""

    def __init__(self, inner: int) -> None:
        self._inner = inner
        self.port = free_port()
        self._stack = contextlib.ExitStack()

    def open(self) -> None:
        listening = self._stack.enter_context(socket.create_server(("127.0.0.1", self.port)))
        threading.Thread(target=self._accept, args=(listening,), daemon=True).start()

    def close(self) -> None:
        self._stack.close()

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                outer, _ = listening.accept()
            except OSError:
                return
            inner = socket.create_connection(("127.0.0.1", self._inner))
            for pair in ((outer, inner), (inner, outer)):
                threading.Thread(target=self._copy, args=pair, daemon=True).start()

    @staticmethod
    def _copy(source: socket.socket, target: socket.socket) -> None:
        with source, target, contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


@pytest.fixture
def door(mlflow_server: int) -> Iterator[Door]:
    door = Door(mlflow_server)
    yield door
    door.close()


def on_server(project: Project, port: int, experiment: str) -> Project:
    """The project with a server's address, and an experiment of the test's own."""
    project.address = f"http://me:s3cret@127.0.0.1:{port}"
    project.experiment = experiment
    return project


def test_server_has_metrics_artifacts_and_a_page_of_the_run(
    project: Project, mlflow_server: int
) -> None:
    on_server(project, mlflow_server, "there")
    exported = project.directory("first") / "exported"
    exported.mkdir()
    (exported / "model.keras").write_text("a model")
    events, sink = project.sink(params={f"p{number}": "é" * 2000 for number in range(120)})
    events.emit("run_started", command="train", step=0)
    events.emit("epoch", epoch=0, step=10, loss=1.0)
    events.emit("exported", path=str(exported), metric="loss", value=1.0, epoch=0, step=10)
    events.emit("run_ended", status="completed")
    events.close()
    assert project.told == []
    assert project.losses(sink.run_id) == [(0, 1.0)]
    run = project.client().get_run(sink.run_id)
    assert len(run.data.params) == 120
    (artifact,) = project.client().list_artifacts(sink.run_id, "exported")
    assert artifact.path == "exported/model.keras"
    page = f"/#/experiments/{run.info.experiment_id}/runs/{sink.run_id}"
    assert sink.run_url == f"http://127.0.0.1:{mlflow_server}{page}"
    written = [path.read_text() for path in project.directory("first").glob("*.json*")]
    assert not [text for text in written if "s3cret" in text]


def test_run_without_its_server_is_sent_with_the_next_run(project: Project, door: Door) -> None:
    on_server(project, door.port, "later")
    project.run({0: 1.0, 1: 0.5}, params={"epochs": "2"})
    (told,) = project.told
    assert told == (
        f"MLflow at http://127.0.0.1:{door.port} takes nothing: Connection refused. The run goes on. What is "
        "not sent is sent when it answers, or with the next run of first."
    )
    assert not (project.directory("first") / "mlflow.json").exists()
    door.open()
    sink = project.run({1: 0.5, 2: 0.25}, step=10, params={"epochs": "3"})
    assert project.losses(sink.run_id) == [(0, 1.0), (1, 0.5), (2, 0.25)]
    times = {
        round(1000 * event["time"])
        for event in read_events(project.directory("first") / "events.jsonl")
        if event["event"] == "epoch"
    }
    history = project.client().get_metric_history(sink.run_id, "loss")
    assert {point.timestamp for point in history} <= times
    assert len(project.told) == 1


def test_server_that_comes_back_is_used_in_the_same_run(
    project: Project, door: Door, until: Until
) -> None:
    on_server(project, door.port, "back")
    events, sink = project.sink()
    events.emit("run_started", command="train", step=0)
    events.emit("epoch", epoch=0, step=10, loss=1.0)
    until(lambda: project.told)
    door.open()
    until(lambda: sink.run_id)
    assert project.client().get_run(sink.run_id).info.status == "RUNNING"
    events.emit("epoch", epoch=1, step=20, loss=0.5)
    events.emit("run_ended", status="completed")
    events.close()
    assert project.losses(sink.run_id) == [(0, 1.0), (1, 0.5)]
    assert len(project.told) == 1


def test_run_that_is_deleted_while_it_runs_is_made_anew(
    project: Project, mlflow_server: int, until: Until
) -> None:
    on_server(project, mlflow_server, "deleted")
    events, sink = project.sink()
    events.emit("run_started", command="train", step=0)
    events.emit("epoch", epoch=0, step=10, loss=1.0)
    first = until(lambda: sink.run_id)
    project.client().delete_run(first)
    events.emit("epoch", epoch=1, step=20, loss=0.5)
    events.emit("run_ended", status="completed")
    events.close()
    assert sink.run_id != first
    assert project.losses(sink.run_id) == [(0, 1.0), (1, 0.5)]
    assert any("was deleted" in told for told in project.told)


def test_run_directory_in_a_bucket_is_read_by_the_sender(
    project: Project, mlflow_server: int, bucket: str
) -> None:
    on_server(project, mlflow_server, "bucket")
    directory = place(f"{bucket}/runs/first")
    for name in ("exported/savedmodel/graph.pb", "validation_report.csv"):
        (directory / name).write_text(name)
    events, sink = project.sink(run_directory=directory)
    events.emit("run_started", command="train", step=0)
    exported = {"metric": "loss", "value": 1.0, "epoch": 0, "step": 10}
    events.emit("exported", path=str(directory / "exported"), **exported)
    report = str(directory / "validation_report.csv")
    events.emit("report", name="validation", points=1, metrics={}, files=[report])
    events.emit("run_ended", status="completed")
    events.close()
    assert project.told == []
    client = project.client()
    (graph,) = client.list_artifacts(sink.run_id, "exported/savedmodel")
    (table,) = client.list_artifacts(sink.run_id, "reports")
    assert (graph.path, table.path) == (
        "exported/savedmodel/graph.pb",
        "reports/validation_report.csv",
    )
    assert (directory / "run_id.txt").read_text() == sink.run_id
