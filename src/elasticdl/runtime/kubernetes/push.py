"""Pushing an image: how far it is, now and then, and in words why it did not arrive."""

from __future__ import annotations

import re
from collections.abc import Callable

from elasticdl.errors import RunError
from elasticdl.runtime.kubernetes.docker_engine import Connection
from elasticdl.runtime.kubernetes.listening import seconds_text
from elasticdl.runtime.kubernetes.transfer import Transfer

__all__ = ["push", "registry_of"]

STALLED_S = 300
"""An engine that tells how far it is tells it every second; a registry may think for a while about a large layer."""
SILENCE_S = 1800
"""Others tell nothing until all is there: podman before its version 5."""

_DIGEST = re.compile(r"\bsha256:[0-9a-f]{64}\b")
_REFUSED = re.compile(r"unauthorized|denied|authentication required|no basic auth|\b40[13]\b", re.I)


def push(connection: Connection, repository: str, tag: str, say: Callable[[str], None]) -> str:
    """Push an image and return its digest, under which the registry has it.

    Raises:
      RunError: the registry is not there, refuses or does not take all of it.
    """
    registry = registry_of(repository)
    say(f"Pushing {repository}:{tag}")
    digest = None
    moved = Transfer("Pushing")

    def on_silence(seconds: float) -> None:
        if seconds >= (STALLED_S if moved.so_far else SILENCE_S):
            raise RunError(_stalled(registry, repository, seconds, moved.so_far))
        so_far = f"{moved.so_far}, and" if moved.so_far else "the engine does not say how far, and"
        say(f"Still pushing: {so_far} nothing was heard for {seconds_text(seconds)}.")

    for answer in connection.answers(
        lambda: connection.client.push(repository, tag=tag, stream=True, decode=True), on_silence
    ):
        if "error" in answer:
            raise RunError(_push_failure(registry, repository, str(answer["error"])))
        moved.take(answer)
        if line := moved.line():
            say(line)
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


def _stalled(registry: str, repository: str, seconds: float, so_far: str) -> str:
    where = f" after {so_far}" if so_far else ""
    return (
        f"The image was not pushed to {repository}: nothing was heard for {seconds_text(seconds)}{where}. Nothing was "
        f"submitted. Check that the registry {registry} is reached from the engine, and try again: what is built is "
        "kept, and layers that are there are not pushed again."
    )


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
