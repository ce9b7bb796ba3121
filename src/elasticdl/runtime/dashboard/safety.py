"""Who may look, and what a browser may do with the answers: the outermost part of the server.

It only reads; a name that leads to loopback does not open it to other sites (DNS rebinding); bound elsewhere it
asks for a token; every answer has a strict content security policy.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

__all__ = ["PAGE_POLICY", "REPORT_POLICY", "Safe", "is_loopback"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; frame-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
REPORT_POLICY = (
    "sandbox allow-downloads; default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
"""A report is a file that a run wrote: it may show itself, and nothing else."""

_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-cache",
}
_POLICY = "content-security-policy"
_YEAR_S = 365 * 24 * 3600


class Safe:
    """Lets in who may look, and sets the headers of every answer.

    Args:
      token: what others must know; None where the server listens on loopback only.
    """

    def __init__(self, app: App, token: str | None = None) -> None:
        self._app, self._token = app, token
        known = hashlib.sha256((token or "").encode()).hexdigest()[:8]
        self._cookie = f"elasticdl_{known}"  # cookies know no ports: each server has its own

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        sent = _with_headers(send, {})
        if scope["method"] not in ("GET", "HEAD"):
            await _refuse(sent, 405, "This server only reads. Use GET.", {"allow": "GET, HEAD"})
            return
        if self._token is None and not _is_own_name(_header(scope, b"host")):
            await _refuse(
                sent,
                403,
                "Unknown Host: open the dashboard as localhost or 127.0.0.1, with its port.",
            )
            return
        if self._token is not None and not self._is_known(scope):
            why = "This dashboard asks for a token: open the address that was printed, with ?token=... in it."
            await _refuse(sent, 401, why, {"www-authenticate": "Bearer"})
            return
        cookie = {"set-cookie": self._set_cookie()} if self._gives_token(scope) else {}
        # What answers GET answers HEAD: the server leaves the content out.
        await self._app({**scope, "method": "GET"}, receive, _with_headers(send, cookie))

    def _is_known(self, scope: Scope) -> bool:
        scheme, _, given = _header(scope, b"authorization").partition(" ")
        if scheme.lower() == "bearer" and self._is_token(given.strip()):
            return True
        return self._gives_token(scope) or self._is_token(self._in_cookie(scope))

    def _gives_token(self, scope: Scope) -> bool:
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        return self._token is not None and self._is_token(next(iter(query.get("token", [])), ""))

    def _in_cookie(self, scope: Scope) -> str:
        """Other servers on this machine set cookies too, of any form: one that is not understood spoils none."""
        parts = (part.strip().partition("=") for part in _header(scope, b"cookie").split(";"))
        return next((value for name, _, value in parts if name == self._cookie), "")

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), (self._token or "").encode())

    def _set_cookie(self) -> str:
        return f"{self._cookie}={self._token}; HttpOnly; SameSite=Strict; Path=/; Max-Age={_YEAR_S}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what is bound to it."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _is_own_name(host: str) -> bool:
    """Whether a Host header names this machine by a name that no other site can have."""
    name, colon, port = host.rpartition(":")
    if not colon or not port.isdecimal() or (":" in name and not name.endswith("]")):
        name = host
    return is_loopback(name)


def _header(scope: Scope, name: bytes) -> str:
    found = [value for key, value in scope["headers"] if key == name]
    return found[0].decode("latin-1") if len(found) == 1 else ""


def _with_headers(send: Send, more: dict[str, str]) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            known = {key.lower() for key, _ in headers}
            wanted = {_POLICY: PAGE_POLICY, **_HEADERS, **more}
            headers += [
                (key.encode(), value.encode("latin-1"))
                for key, value in wanted.items()
                if key.encode() not in known
            ]
            message = {**message, "headers": headers}
        await send(message)

    return sent


async def _refuse(send: Send, status: int, why: str, headers: dict[str, str] | None = None) -> None:
    body = json.dumps({"error": why}).encode()
    told = {"content-type": "application/json", "content-length": str(len(body)), **(headers or {})}
    pairs = [(key.encode(), value.encode()) for key, value in told.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})
