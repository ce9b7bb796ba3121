"""What the API server's refusals, and its silence, mean in words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from elasticdl.errors import ElasticDLError, RunError
from elasticdl.runtime.kubernetes.access import import_kubernetes

__all__ = ["Refused", "Unreachable", "spoken", "words_of"]


class Refused(RunError):
    """The API server answered with an error.

    Attributes:
      status: its HTTP status; 403 is forbidden, 404 not there, 409 a conflict.
      said: the server's own words.
    """

    def __init__(self, message: str, status: int, said: str) -> None:
        super().__init__(message)
        self.status, self.said = status, said


class Unreachable(RunError):
    """Nobody answered: no name, no connection, no trust, or an answer that broke off."""


@contextmanager
def spoken(host: str, doing: str) -> Iterator[None]:
    """Turns the client's exceptions into ours.

    Args:
      host: the API server's address.
      doing: what is asked for, to stand after "cannot": `create the RayJob 'mnist'`.
    """
    urllib3 = import_kubernetes("client.rest").urllib3
    api_exception = import_kubernetes().ApiException
    try:
        yield
    except api_exception as error:
        if isinstance(error.__context__, (KeyboardInterrupt, SystemExit)):
            raise error.__context__ from None  # the client makes an answer of it
        raise _of_answer(error, host, doing) from error
    except (urllib3.exceptions.HTTPError, OSError) as error:
        if isinstance(error, ElasticDLError):
            raise
        raise _of_silence(error, host) from error


def words_of(error: Any) -> str:
    """The server's own words in one of the client's exceptions."""
    try:
        message = json.loads(error.body).get("message")
    except (AttributeError, TypeError, ValueError):
        message = None
    return str(message or error.body or error.reason or f"status {error.status}").strip()


def _of_answer(error: Any, host: str, doing: str) -> ElasticDLError:
    status, said = int(error.status or 0), words_of(error)
    if status == 0:
        status, said = _of_handshake(said)
    if status == 0:
        return _of_silence(error, host)
    if status == 401:
        return Refused(
            f"The cluster at {host} does not accept the credentials: {said}. They are wrong or have "
            "expired. Log in again as your cluster's provider says, then try: kubectl auth whoami",
            status,
            said,
        )
    if status == 403:
        return Refused(
            f"You may not {doing}: {said}. Ask whoever runs the cluster for the rights "
            "in deploy/rbac.yaml.",
            status,
            said,
        )
    return Refused(f"The cluster cannot {doing}: {said}", status, said)


def _of_handshake(said: str) -> tuple[int, str]:
    """The status inside of what the client says when a web socket is refused."""
    found = re.match(r"Handshake status (\d+) (.*?)(?: -\+-\+-|$)", said, re.DOTALL)
    body = said.rsplit("-+-+-", 1)[-1]
    message = re.search(r'"message":\s*"((?:[^"\\]|\\.)*)"', body)
    if not found:
        return 0, said
    return int(found[1]), message[1] if message else found[2]


def _of_silence(error: BaseException, host: str) -> Unreachable:
    said = _innermost(error)
    if "certificate" in said.lower():
        return Unreachable(
            f"The cluster at {host} is not trusted: {said}. Its certificate and the "
            "certificate-authority in the kubeconfig do not belong together: fetch the kubeconfig anew."
        )
    if "ssl" in said.lower():
        return Unreachable(
            f"The cluster at {host} is not trusted: it speaks no TLS that is known here: {said}. "
            "Is its address (server) in the kubeconfig right, and what is in between (a proxy)?"
        )
    return Unreachable(
        f"The cluster at {host} does not answer: {said}. Is it up, and can it be reached from here "
        "(VPN, proxy)? Try: kubectl cluster-info"
    )


def _innermost(error: BaseException) -> str:
    """The last cause: the outer ones repeat it with addresses of objects around it."""
    seen: BaseException = error
    while (cause := seen.__cause__ or getattr(seen, "reason", None)) and isinstance(
        cause, BaseException
    ):
        seen = cause
    text = str(getattr(seen, "strerror", None) or getattr(seen, "reason", None) or seen)
    lines = re.sub(r"<[^>]*>[:,]?\s*", "", text).strip().splitlines()
    return lines[-1].rstrip(".") if lines else type(seen).__name__
