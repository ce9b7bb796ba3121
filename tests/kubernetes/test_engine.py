"""An engine that is slow, falls silent or goes away: it is said while it lasts, and given up in words."""

from __future__ import annotations

import contextlib
import http.server
import io
import json
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from elasticdl.errors import InvalidValue, RunError
from elasticdl.runtime.kubernetes import docker_engine, push, transfer
from elasticdl.runtime.kubernetes.docker_engine import DockerEngine, build, connected
from elasticdl.runtime.kubernetes.transfer import Transfer

REPOSITORY = "registry.example.com/team/models"
DIGEST = f"sha256:{'0' * 64}"
AT_THE_END = {"status": f"1: digest: {DIGEST} size: 1681"}


def layer(name: str, status: str, current: int = 0, total: int = 0) -> dict[str, Any]:
    detail = {"current": current * 1_000_000, "total": total * 1_000_000} if total else {}
    return {"id": name, "status": status, "progressDetail": detail}


class Engine(http.server.ThreadingHTTPServer):
    """Speaks as much of Docker's API as a push and a build need, and is silent when told to."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Requests)
        self.answers: list[dict[str, Any]] = []
        self.then: Callable[[_Requests], None] = lambda request: None
        self.is_mute, self.goes_on = threading.Event(), threading.Event()
        self.was_left = threading.Event()

    @property
    def engine(self) -> DockerEngine:
        return DockerEngine(base_url=f"tcp://127.0.0.1:{self.server_port}")

    def waits_until_left(self, request: _Requests) -> None:
        request.connection.settimeout(20)
        with contextlib.suppress(OSError):
            while request.connection.recv(1 << 10):
                pass  # the request's own body may still come
            self.was_left.set()

    def falls_mute(self, request: _Requests) -> None:
        self.is_mute.set()
        self.waits_until_left(request)

    def waits(self, request: _Requests) -> None:
        self.goes_on.wait(20)
        request.tell(AT_THE_END)

    def breaks_off(self, request: _Requests) -> None:
        request.connection.shutdown(socket.SHUT_RDWR)


class _Requests(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Engine

    def do_GET(self) -> None:
        if self.server.is_mute.is_set():
            self.server.goes_on.wait(20)
        version = b'{"ApiVersion": "1.41"}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(version)))
        self.end_headers()
        self.wfile.write(version)

    def do_POST(self) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for answer in self.server.answers:
            self.tell(answer)
        self.server.then(self)
        with contextlib.suppress(OSError):
            self.wfile.write(b"0\r\n\r\n")

    def tell(self, answer: dict[str, Any]) -> None:
        line = json.dumps(answer).encode() + b"\r\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine() as engine:
        thread = threading.Thread(target=engine.serve_forever, args=[0.01])
        thread.start()
        yield engine
        engine.goes_on.set()
        engine.shutdown()
        thread.join()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A silence is short here."""
    monkeypatch.setattr(docker_engine, "QUIET_S", 0.05)


def pushed(engine: Engine, say: Callable[[str], None] = print) -> str:
    with connected(engine.engine, say) as connection:
        return push.push(connection, REPOSITORY, "1", say)


def test_a_push_tells_how_far_it_is_now_and_then() -> None:
    times = iter([0.0, 4.0, 11.0, 11.0, 12.0, 22.0, 22.0])
    moved = Transfer("Pushing", lambda: next(times))
    moved.take(layer("a", "Preparing"))
    assert moved.line() == ""  # nothing is known
    moved.take(layer("a", "Pushing", 5, 200))
    assert moved.line() == ""  # four seconds
    moved.take(layer("b", "Pushing", 100, 1300))
    assert moved.line() == "Pushing: 105 MB of 1.5 GB"
    assert moved.line() == ""
    moved.take(layer("a", "Pushed"))
    moved.take(layer("b", "Pushing", 1400, 1300))  # as Docker does
    moved.take(layer("c", "Extracting", 1, 9))
    assert moved.line() == "Pushing: 1.5 GB of 1.5 GB"


def test_what_an_engine_tells_of_layers_is_said(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "EVERY_S", 0)
    engine.answers = [layer("a", "Pushing", 5, 20), layer("a", "Pushed"), AT_THE_END]
    said: list[str] = []
    assert pushed(engine, said.append) == DIGEST
    assert said[:3] == [
        f"Pushing {REPOSITORY}:1",
        "Pushing: 5 MB of 20 MB",
        "Pushing: 20 MB of 20 MB",
    ]
    assert said[-1] == f"Pushed {REPOSITORY}@{DIGEST}"


@pytest.mark.usefixtures("impatient")
def test_an_engine_that_tells_nothing_until_the_end_is_waited_for(engine: Engine) -> None:
    engine.then = engine.waits
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if line.startswith("Still pushing: the engine does not say how far"):
            engine.goes_on.set()

    assert pushed(engine, say) == DIGEST
    assert said[-2].startswith("Still") and said[-1].startswith("Pushed")


@pytest.mark.usefixtures("impatient")
def test_a_push_that_stalls_is_given_up_and_the_engine_is_left(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        push, "STALLED_S", 1.0
    )  # long enough to hear of the layer on a busy machine
    engine.answers, engine.then = [layer("a", "Pushing", 5, 20)], engine.waits_until_left
    with pytest.raises(RunError, match=r"nothing was heard for .* after 5 MB of 20 MB") as error:
        pushed(engine)
    assert "Check that the registry registry.example.com is reached" in str(error.value)
    assert engine.was_left.wait(20)


@pytest.mark.usefixtures("impatient")
def test_an_engine_that_falls_mute_in_its_work_is_told_from_a_slow_registry(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connected(engine.engine, print) as connection:
        monkeypatch.setattr(docker_engine, "ANSWER_S", 0.2)
        engine.answers, engine.then = [layer("a", "Pushing", 5, 20)], engine.falls_mute
        with pytest.raises(RunError, match=r"does not answer any more: it was silent for"):
            push.push(connection, REPOSITORY, "1", print)


def test_an_engine_that_goes_away_is_an_error_in_words(engine: Engine) -> None:
    engine.answers, engine.then = [layer("a", "Pushing", 5, 20)], engine.breaks_off
    with pytest.raises(RunError, match=r"The Docker engine at tcp://127.* went away"):
        pushed(engine)


def test_who_is_waited_for_is_said_when_an_engine_is_mute(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docker_engine, "PATIENCE_S", 0.02)
    monkeypatch.setattr(docker_engine, "ANSWER_S", 0.2)
    engine.is_mute.set()
    said: list[str] = []
    with pytest.raises(RunError, match=r"No Docker engine answers at tcp://.*: nothing was heard"):
        pushed(engine, said.append)
    assert said == [f"Waiting for the Docker engine at {engine.engine} ..."]


@pytest.mark.usefixtures("impatient")
def test_a_build_that_says_nothing_names_its_step(engine: Engine) -> None:
    engine.answers = [{"stream": "Step 5/11 : RUN pip install -r a.txt\n"}]
    engine.then = lambda request: bool(engine.goes_on.wait(20)) and None
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if line.startswith("Still building: RUN pip install -r a.txt: nothing was heard for"):
            engine.goes_on.set()

    with connected(engine.engine, say) as connection:
        build(connection, io.BytesIO(b""), "a:1", say)
    assert engine.goes_on.is_set(), said


@pytest.mark.parametrize("address", ["tcp://scott:ti/ger@host:1", "scott:ger@host:1"])
def test_a_password_of_an_engine_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(InvalidValue, match="an engine takes no password") as error:
        DockerEngine(base_url=address)
    assert "ger" not in str(error.value).replace("docker", "")


def test_a_password_in_the_environment_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://scott:tiger@127.0.0.1:1")
    with (
        pytest.raises(RunError, match=r"No Docker engine answers at tcp://\.\.\.@127") as error,
        connected(DockerEngine(), print),
    ):
        pass
    assert "tiger" not in str(error.value)


@pytest.mark.parametrize(
    "address", ["ssh://me@build.example.com", "unix:///run/me@here/docker.sock"]
)
def test_users_and_paths_are_no_passwords(address: str) -> None:
    assert str(DockerEngine(base_url=address)) == address
