"""The engine that builds and pushes images, by the Docker SDK: its log, and its failures in words."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from elasticdl.errors import InvalidValue, MissingPackage, RunError, reason
from elasticdl.runtime.kubernetes.build_log import BuildLog

__all__ = ["DockerEngine", "build", "connected", "push"]

ANSWER_S = 30
SILENCE_S = 3600
"""How long a push may say nothing; a large layer takes its time."""

_DIGEST = re.compile(r"\bsha256:[0-9a-f]{64}\b")
_REFUSED = re.compile(r"unauthorized|denied|authentication required|no basic auth|\b40[13]\b", re.I)


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

    def __str__(self) -> str:
        return self.base_url or os.environ.get("DOCKER_HOST") or "Docker's usual place"


@contextmanager
def connected(engine: DockerEngine) -> Iterator[Any]:
    """The SDK's client of an engine that answers.

    Raises:
      MissingPackage: the SDK is not installed.
      RunError: no engine answers.
    """
    docker = _import_docker()
    try:
        _knock(engine)
        client = _client(docker, engine)
    except (docker.errors.DockerException, OSError, ValueError) as error:
        raise RunError(
            f"No Docker engine answers at {engine}: {reason(error)}. Start one (Docker Desktop, "
            "'systemctl start docker', or 'podman system service'), give its address with --docker_base_url, or "
            "give --image_name an image that is there already."
        ) from error
    try:
        client.timeout = SILENCE_S
        yield client
    except docker.errors.DockerException as error:
        raise RunError(f"The Docker engine at {engine} failed: {reason(error)}.") from error
    except OSError as error:  # those of requests are, too
        if type(error).__module__.partition(".")[0] not in ("requests", "urllib3"):
            raise
        raise RunError(f"The Docker engine at {engine} went away: {reason(error)}.") from error
    finally:
        client.close()


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
    scheme, _, path = (engine.base_url or os.environ.get("DOCKER_HOST", "")).partition("://")
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


def build(client: Any, context: IO[bytes], tag: str, say: Callable[[str], None]) -> None:
    """Build an image of a context, saying every line of the log.

    Raises:
      RunError: a step failed; it shows that step's own lines.
    """
    log = BuildLog(say)
    answers = client.build(
        fileobj=context,
        custom_context=True,
        tag=tag,
        rm=True,
        forcerm=True,
        decode=True,
        platform=os.environ.get("DOCKER_DEFAULT_PLATFORM"),  # as for Docker's own command
    )
    for answer in answers:
        log.take(str(answer.get("stream", "")))
        if "error" in answer:
            raise RunError(log.failure(str(answer["error"])))
    log.end()


def push(client: Any, repository: str, tag: str, say: Callable[[str], None]) -> str:
    """Push an image and return its digest, under which the registry has it.

    Raises:
      RunError: the registry is not there, refuses or does not take all of it.
    """
    registry = registry_of(repository)
    say(f"Pushing {repository}:{tag}")
    digest = None
    for answer in client.push(repository, tag=tag, stream=True, decode=True):
        if "error" in answer:
            raise RunError(_push_failure(registry, repository, str(answer["error"])))
        # Docker says it twice, podman in words only.
        digest = _DIGEST.search(f"{answer.get('aux')} {answer.get('status')}") or digest
    if digest is None:
        raise RunError(
            f"The push of {repository}:{tag} ended without a digest: the registry {registry} may not have all of it. "
            "Nothing was submitted. Try again."
        )
    say(f"Pushed {repository}@{digest[0]}")
    return digest[0]


def registry_of(repository: str) -> str:
    """The registry that a repository is in, as `docker login` takes it."""
    first, slash, _ = repository.partition("/")
    return first if slash and (set(first) & {".", ":"} or first == "localhost") else "docker.io"


def _push_failure(registry: str, repository: str, error: str) -> str:
    if _REFUSED.search(error):
        return (
            f"The registry {registry} refused the image for {repository}: {error.strip()}. Log in with: docker login "
            f"{registry}; and check that you may push there."
        )
    return (
        f"The image was not pushed to {repository}: {error.strip()}. Nothing was submitted. Check that the registry "
        f"{registry} is reached from the engine, and try again: what is built is kept."
    )
