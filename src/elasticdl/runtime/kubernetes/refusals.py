"""What the API server's refusals, and its silence, mean in words."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from elasticdl.errors import ElasticDLError, RunError
from elasticdl.runtime.kubernetes.access import import_kubernetes

__all__ = ["Refused", "Unreachable", "is_passing", "no_api", "spoken", "words_of"]

LINE = 200
"""So much of an answer that is none of Kubernetes' own is shown."""


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
    """Nobody answered: no name, no connection, no trust, an answer that broke off, or somebody else's."""


def is_passing(error: Exception) -> bool:
    """Whether the same question may be answered a little later."""
    if isinstance(error, Refused):
        return error.status >= 500 or error.status == 429
    return isinstance(error, Unreachable)


def no_api(host: str, answer: object) -> Unreachable:
    """The error for an answer that no API server gives.

    Args:
      answer: its body, or what it is in words.
    """
    text = answer if isinstance(answer, str) else "no JSON"
    if isinstance(answer, bytes) and answer.lstrip()[:1] == b"<":
        text = "HTML"
    return Unreachable(
        f"The cluster at {host} does not answer as a Kubernetes API ({text}): is a proxy or a login page in between? "
        "Look at its address (server) in the kubeconfig."
    )


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
        if not error.status and isinstance(error.__context__, (KeyboardInterrupt, SystemExit)):
            raise error.__context__ from None  # the client makes an answer of it
        raise _of_answer(error, host, doing) from error
    except (urllib3.exceptions.HTTPError, OSError) as error:
        if isinstance(error, ElasticDLError):
            raise
        raise _of_silence(error, host) from error


def words_of(error: Any) -> str:
    """The server's own words in one of the client's exceptions: of a page, which is somebody else's, only its title."""
    body = error.body.decode("utf-8", "replace") if isinstance(error.body, bytes) else error.body
    text = str(body or "").strip()
    with contextlib.suppress(AttributeError, ValueError):
        if message := json.loads(text).get("message"):
            return str(message).strip()
    title = f"{error.status} {error.reason or ''}".strip()
    if text.startswith("<"):
        return f"{title} (as HTML: is a proxy or a login page in between?)"
    if not error.status:  # the client's own words
        return text or str(error.reason or "").strip()
    first = (text.splitlines() or [""])[0][:LINE]
    return first if first and first.isprintable() else title


def _of_answer(error: Any, host: str, doing: str) -> ElasticDLError:
    status, said = int(error.status or 0), words_of(error)
    if status == 0:
        status, said = _of_handshake(said)
    if status == 0:
        return _of_silence(error, host)
    if status < 400:
        return no_api(host, _redirect(error) or f"status {status}")
    return Refused(_refusal(status, said, host, doing), status, said)


def _refusal(status: int, said: str, host: str, doing: str) -> str:
    end = said if said.endswith((".", "!", "?")) else f"{said}."
    if status == 401:
        return (
            f"The cluster at {host} does not accept the credentials: {end} They are wrong or have "
            "expired. Log in again as your cluster's provider says, then try: kubectl auth whoami"
        )
    if status == 403:
        return f"You may not {doing}: {end} {_permission(said)}"
    if status == 429:
        return f"The cluster cannot {doing}: {end} It has too much to do: try again in a minute."
    if status >= 500:
        return (
            f"The cluster cannot {doing}: {end} That is trouble of its own: try again, and if it stays tell whoever "
            "runs the cluster."
        )
    return f"The cluster cannot {doing}: {said}"


def _permission(said: str) -> str:
    """What helps: rights are one thing, rules for what is made with them another."""
    if re.search(r"is forbidden: User .* cannot ", said, re.DOTALL):
        return "Ask whoever runs the cluster for the rights in deploy/rbac.yaml."
    return "A rule of the cluster forbids it: do as it says, or ask whoever runs the cluster."


def _redirect(error: Any) -> str:
    address = (error.headers or {}).get("Location") if hasattr(error, "headers") else None
    if not address:
        return ""
    place = urlsplit(str(address))
    return f"a redirect to {place.scheme}://{place.hostname}" if place.hostname else "a redirect"


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
