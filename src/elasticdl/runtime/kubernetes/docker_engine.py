"""The engine that builds images, by the Docker SDK: its log, its silence, and its failures in words."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any

from elasticdl.errors import InvalidValue, MissingPackage, RunError, reason
from elasticdl.runtime.kubernetes.build_log import BuildLog
from elasticdl.runtime.kubernetes.listening import heard, seconds_text
from elasticdl.runtime.kubernetes.logins import has_password, login_of, without_login
from elasticdl.runtime.kubernetes.transfer import Transfer

__all__ = ["Connection", "DockerEngine", "build", "connected"]

ANSWER_S = 30
PATIENCE_S = 3
"""After so long it is said who is waited for."""
QUIET_S = 30
"""After each silence of so long in its work, an engine is asked whether it is there."""
BUILD_SILENCE_S = 3600
"""pip says nothing while it unpacks gigabytes."""


@dataclass(frozen=True, kw_only=True)
class DockerEngine:
    """Where the engine is: at an address, or where Docker's own command finds it."""

    base_url: str | None = None
    tlscert: str | None = None
    tlskey: str | None = None

    def __post_init__(self) -> None:
        if (self.tlscert is None) != (self.tlskey is None):
            raise InvalidValue(
                "Invalid docker_tlscert and docker_tlskey: one of them is given alone. Give both, or none."
            )
        if self.tlscert and self.base_url is None:
            raise InvalidValue(
                "Invalid docker_tlscert: it goes with an address. Give --docker_base_url, such as "
                "tcp://host:2376, or none of them."
            )

        if self.base_url and has_password(self.base_url):
            raise InvalidValue(
                f"Invalid docker_base_url {without_login(self.base_url)}: an engine takes no password. Give an address "
                "such as tcp://host:2376 with --docker_tlscert and --docker_tlskey, or ssh://user@host."
            )

    @property
    def address(self) -> str:
        """Empty where it is Docker's usual place."""
        return self.base_url or os.environ.get("DOCKER_HOST") or ""

    def __str__(self) -> str:
        shown = without_login(self.address) if has_password(self.address) else self.address
        return shown or "Docker's usual place"


@dataclass
class Connection:
    """An engine that answered, by the SDK's client."""

    engine: DockerEngine
    client: Any
    _last: Any = None

    def __post_init__(self) -> None:
        self.client.timeout = 2 * BUILD_SILENCE_S
        self.client.hooks["response"].append(self._remember)

    def answers(
        self, ask: Callable[[], Iterable[Any]], on_silence: Callable[[float], None]
    ) -> Iterator[Any]:
        """What it tells of some work. While it is silent it is asked whether it is there."""

        def silent(seconds: float) -> None:
            self._knock_again(seconds)
            on_silence(seconds)

        yield from heard(ask, QUIET_S, silent)

    def close(self) -> None:
        """Also when somebody still listens: a build that nobody waits for ends."""
        if self._last is not None:
            with suppress(ValueError, RuntimeError, OSError):  # it has ended, or has no socket
                self._last.raw.shutdown()
        self.client.close()

    def _remember(self, response: Any, *_: object, **__: object) -> None:
        self._last = response

    def _knock_again(self, seconds: float) -> None:
        docker = _import_docker()
        try:
            _client(docker, self.engine).close()
        except (docker.errors.DockerException, OSError, ValueError) as error:
            raise RunError(
                f"The Docker engine at {self.engine} does not answer any more: it was silent for "
                f"{seconds_text(seconds)}, and asked again, {_words(self.engine, error)}. Nothing was submitted. "
                "Look after the engine, and try again: steps that are done are kept."
            ) from error


@contextmanager
def connected(engine: DockerEngine, say: Callable[[str], None]) -> Iterator[Connection]:
    """An engine that answers.

    Raises:
      MissingPackage: the SDK is not installed.
      RunError: no engine answers.
    """
    docker = _import_docker()
    connection = Connection(engine, _answering(docker, engine, say))
    try:
        yield connection
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("docker", "requests", "urllib3"):
            raise
        failed = "failed" if isinstance(error, docker.errors.DockerException) else "went away"
        raise RunError(
            f"The Docker engine at {engine} {failed}: {_words(engine, error)}. Nothing was submitted."
        ) from error
    finally:
        connection.close()


def _answering(docker: Any, engine: DockerEngine, say: Callable[[str], None]) -> Any:
    waits: list[str] = []

    def on_silence(seconds: float) -> None:
        if not waits:
            waits.append(f"Waiting for the Docker engine at {engine} ...")
            say(waits[0])

    def ask() -> Iterator[Any]:
        _knock(engine)
        yield _client(docker, engine)

    try:
        return next(heard(ask, PATIENCE_S, on_silence))
    except (docker.errors.DockerException, OSError, ValueError) as error:
        raise RunError(
            f"No Docker engine answers at {engine}: {_words(engine, error)}. Start one (Docker Desktop, "
            "'systemctl start docker', or 'podman system service'), give its address with --docker_base_url, or "
            "give --image_name an image that is there already."
        ) from error


def _words(engine: DockerEngine, error: BaseException) -> str:
    """What is wrong with an engine, without what is secret in its address."""
    if "timed out" in str(error):
        return f"nothing was heard for {ANSWER_S} seconds"
    login = login_of(engine.address)
    return reason(error).replace(login, "...") if login else reason(error)


def _import_docker() -> Any:
    try:
        import docker  # type: ignore[import-untyped]
    except ImportError as error:
        raise MissingPackage(
            "Images are built with Docker's SDK, which is not installed. Install it with: "
            "pip install 'elasticdl[kubernetes]', or give --image_name an image that is there already."
        ) from error
    return docker


def _knock(engine: DockerEngine) -> None:
    """Raise `OSError` when nobody listens: the SDK would leave its socket open."""
    scheme, _, path = engine.address.partition("://")
    if scheme == "unix":
        with socket.socket(socket.AF_UNIX) as knocking:
            knocking.connect(f"/{path.lstrip('/')}")


def _client(docker: Any, engine: DockerEngine) -> Any:
    if engine.base_url is None:
        return docker.from_env(timeout=ANSWER_S).api
    tls = False
    if engine.tlscert:
        tls = docker.tls.TLSConfig(client_cert=(engine.tlscert, engine.tlskey), verify=True)
    return docker.APIClient(base_url=engine.base_url, tls=tls, timeout=ANSWER_S)


def build(connection: Connection, context: IO[bytes], tag: str, say: Callable[[str], None]) -> None:
    """Build an image of a context, saying every line of the log.

    Raises:
      RunError: a step failed; it shows that step's own lines.
    """
    log = BuildLog(say)

    def ask() -> Iterable[Any]:
        answers: Iterable[Any] = connection.client.build(
            fileobj=context,
            custom_context=True,
            tag=tag,
            rm=True,
            forcerm=True,
            decode=True,
            platform=os.environ.get("DOCKER_DEFAULT_PLATFORM"),  # as for Docker's own command
        )
        return answers

    def on_silence(seconds: float) -> None:
        if seconds >= BUILD_SILENCE_S:
            raise RunError(log.failure(f"Nothing was heard for {seconds_text(seconds)}."))
        say(f"Still building: {log.step}: nothing was heard for {seconds_text(seconds)}.")

    pulled = Transfer("Pulling the base")
    for answer in connection.answers(ask, on_silence):
        pulled.take(answer)
        if line := pulled.line():
            say(line)
        log.take(str(answer.get("stream", "")))
        if "error" in answer:
            raise RunError(log.failure(str(answer["error"])))
    log.end()
