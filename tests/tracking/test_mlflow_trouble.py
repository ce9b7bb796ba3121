"""MLflow that is not there, does not answer or falls over: a run goes on, and says so once."""

from __future__ import annotations

import base64
import contextlib
import http.server
import os
import signal
import socket
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from elasticdl.tracking.events import read_events
from elasticdl.tracking.mlflow import MlflowSender
from elasticdl.tracking.mlflow_reason import reason_of

from .conftest import Project

Until = Callable[[Callable[[], Any]], Any]

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A server that takes connections and never answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield int(listening.getsockname()[1])


def test_missing_mlflow_is_told_once_with_its_pip_line(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    project.run({0: 1.0, 1: 0.5})
    (told,) = project.told
    assert "pip install 'elasticdl[mlflow]'" in told


def test_sender_that_dies_is_told_once_and_the_run_goes_on(project: Project, until: Until) -> None:
    sender = MlflowSender()
    events, _ = project.sink(sender=sender)
    events.emit("run_started", command="train", step=0)
    assert sender.process is not None
    os.kill(sender.process.pid, signal.SIGKILL)
    until(lambda: project.told)
    events.emit("epoch", epoch=0, step=10, loss=1.0)
    events.emit("run_ended", status="completed")
    events.close()
    (told,) = project.told
    assert "next run of first" in told
    assert project.losses(project.run({1: 0.5}, step=10).run_id) == [(0, 1.0), (1, 0.5)]


def test_sender_without_a_run_can_be_ended() -> None:
    sender = MlflowSender()
    sender.end_unused()
    assert sender.process is not None
    assert sender.process.poll() == -signal.SIGKILL


def test_close_waits_no_longer_than_its_limit(
    project: Project, silent_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "2")
    events, sink = project.sink(tracking_uri=f"http://me:secret@127.0.0.1:{silent_port}")
    sink.patience_s = 0.2
    events.emit("run_started", command="train", step=0)
    events.emit("run_ended", status="completed")
    events.close()
    (told,) = project.told
    assert f"MLflow at http://127.0.0.1:{silent_port} has not taken all of first" in told
    sink._thread.join()  # the sender gives up by itself
    assert len(project.told) == 1


def test_server_that_does_not_answer_is_told_once_without_secrets(
    project: Project, silent_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    sink = project.run({0: 1.0}, tracking_uri=f"http://me:s%40cret@127.0.0.1:{silent_port}")
    (told,) = project.told
    assert "it does not answer in time" in told
    assert sink.run_id is None
    written = [path.read_text() for path in project.directory("first").iterdir()]
    assert not [text for text in [told, *written] if "cret" in text or "me:" in text]


class Refusing(http.server.BaseHTTPRequestHandler):
    """Lets nobody in, and remembers who knocked."""

    seen: list[str] = []

    def do_GET(self) -> None:
        self.seen.append(self.headers.get("Authorization", ""))
        self.send_error(401)

    do_POST = do_GET

    def log_message(self, *words: Any) -> None:
        pass


def test_server_that_refuses_the_password_of_the_address_is_told_once(project: Project) -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        project.run({0: 1.0}, tracking_uri=f"http://me:s%40cret@127.0.0.1:{server.server_port}")
        server.shutdown()
    (told,) = project.told
    assert "it refuses this user or password (HTTP 401)" in told
    assert {base64.b64decode(word.split()[1]) for word in Refusing.seen} == {b"me:s@cret"}


def test_database_that_cannot_be_opened_is_told_once(project: Project) -> None:
    Path("a file").touch()
    project.run({0: 1.0}, tracking_uri="sqlite:///a file/mlflow.db")
    (told,) = project.told
    assert "takes nothing" in told


def test_locked_database_is_told_in_one_line_without_sql(project: Project) -> None:
    with contextlib.closing(sqlite3.connect(project.root / "mlflow.db")) as other:
        other.execute("BEGIN EXCLUSIVE")
        project.run({0: 1.0}, tracking_uri=f"{project.address}?timeout=0.1")
    (told,) = project.told
    assert "takes nothing: database is locked. The run goes on." in told
    assert "\n" not in told


def test_reason_is_short_and_without_secrets_wherever_it_is_cut() -> None:
    for length in range(150, 240):
        error = RuntimeError(
            f"{'x' * length} s3cret-word at http://me:other-word@host/\n[SQL: SELECT]"
        )
        told = reason_of(error, ["s3cret-word"])
        assert len(told) <= 200
        assert not [word for word in ("s3c", "oth", "me:", "SQL", "\n") if word in told]


def test_artifact_that_is_gone_is_told_and_the_rest_sent(project: Project) -> None:
    events, sink = project.sink()
    events.emit("run_started", command="train", step=0)
    events.emit("report", name="validation", points=1, metrics={"ce": 0.5}, files=["gone.csv"])
    events.emit("run_ended", status="completed")
    events.close()
    (told,) = project.told
    assert "gone.csv" in told
    run = project.client().get_run(sink.run_id)
    assert (run.info.status, run.data.metrics) == ("FINISHED", {"validation_ce": 0.5})


def test_warning_may_be_an_event_of_the_run_itself(project: Project) -> None:
    Path("a file").touch()
    begun: list[Any] = []
    events, _ = project.sink(
        tracking_uri="sqlite:///a file/mlflow.db",
        warn=lambda text: begun[0].emit("warning", message=text),
    )
    begun.append(events)
    events.emit("run_started", command="train", step=0)
    path = project.directory("first") / "events.jsonl"
    while "warning" not in [event["event"] for event in read_events(path)]:
        events.emit("epoch", epoch=0, step=10, loss=1.0)
    events.close()
