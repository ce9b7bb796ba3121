"""The server beside a training, in a thread of its own, or in the foreground for `elasticdl dashboard`.

The address is known at once; FastAPI is loaded in the thread, so that nobody waits for it.
"""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import os
import platform
import secrets
import socket
import threading
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from elasticdl.errors import InvalidValue, MissingPackage, RunError, UserError, reason
from elasticdl.runtime.dashboard.runs import Runs, address_of, id_of
from elasticdl.runtime.dashboard.safety import is_loopback
from elasticdl.storage import place

__all__ = ["PORT", "TOKEN", "Dashboard", "is_installed", "start", "try_start"]

PORT = 8280
"""Taken when it is free."""
LAST_PORT = 65_535
TOKEN = "ELASTICDL_DASHBOARD_TOKEN"
SHORTEST_TOKEN = 16
PACKAGES = ("fastapi", "uvicorn", "prometheus_client")
STOP_S = 5.0
LAST_LOOK_S = 3.0
"""A page that is open asks more often than that."""


class Dashboard:
    """A server that runs.

    Attributes:
      url: to open in a browser; with the token, where one is asked for.
      runs: what it tells of.
    """

    def __init__(self, url: str, listening: socket.socket, runs: Runs, token: str | None) -> None:
        self.url = url
        self.runs = runs
        self._socket, self._token = listening, token
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        self._server: Any = None
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="dashboard", daemon=True)
        self._thread.start()

    def url_of(self, directory: str) -> str:
        """The page of one run."""
        main, mark, query = self.url.partition("?")
        return f"{main}run/{id_of(address_of(place(directory)))}{mark}{query}"

    def add(self, directory: str) -> None:
        """Tell of the runs in this directory too."""
        self.runs.add(directory)

    def linger(self) -> None:
        """Give a page that is open the time to see how it ended; none where nobody looks."""
        before = self._num_asked
        if not before:
            return
        until = time.monotonic() + LAST_LOOK_S
        while self._num_asked == before and time.monotonic() < until:
            time.sleep(0.05)
        if self._num_asked == before:
            return
        time.sleep(0.5)  # it asks for several things
        until = time.monotonic() + LAST_LOOK_S
        while self._server.server_state.tasks and time.monotonic() < until:
            time.sleep(0.05)

    @property
    def _num_asked(self) -> int:
        """The answers that were given, and those that are being made."""
        if self._server is None:
            return 0
        state = self._server.server_state
        return int(state.total_requests) + len(state.tasks)

    def stop(self) -> None:
        """End it. It may be ended twice."""
        with self._lock:
            self._ended.set()
            server = self._server
        if server is not None:
            server.stop()
        self._thread.join(STOP_S)
        self._socket.close()

    def wait(self) -> None:
        """Until it ends, for whoever has nothing else to do.

        Raises:
          RunError: it could not go on.
        """
        while self._thread.is_alive():
            self._thread.join(0.5)  # in between Ctrl-C is heard
        if self._failure is not None:
            raise RunError(f"The dashboard has ended: {reason(self._failure)}.") from self._failure

    def __enter__(self) -> Dashboard:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            from elasticdl.runtime.dashboard.app import make_app
            from elasticdl.runtime.dashboard.server import Server

            server = Server(make_app(self.runs, token=self._token))
            with self._lock:
                if self._ended.is_set():
                    return
                self._server = server
            server.run_on(self._socket)
        except BaseException as error:  # nothing of this may reach the training
            self._failure = error
        finally:
            with contextlib.suppress(OSError):
                self._socket.close()


def start(
    directories: Sequence[str], *, host: str = "127.0.0.1", port: int = 0, token: str | None = None
) -> Dashboard:
    """Serve the runs in these directories until it is stopped.

    Args:
      port: 0 takes 8280, or a free one if that is taken.
      token: who looks must know it. Needed, and made if it is not given, where others can reach the host;
        also taken from the environment, ELASTICDL_DASHBOARD_TOKEN.

    Raises:
      MissingPackage: the packages of elasticdl[dashboard] are not installed.
      InvalidValue: the host or the port cannot be had, or the token is too short.
      UnknownName: there is no driver for the address of a directory.

    Example:
      >>> with start(["runs"]) as dashboard:  # doctest: +SKIP
      ...     print(dashboard.url)
    """
    if not is_installed():
        raise MissingPackage(
            "The dashboard needs packages that are not installed. Install them with: "
            "pip install 'elasticdl[dashboard]'"
        )
    token = _token(host, token)
    runs = Runs(directories)
    listening = _listening(host, port)
    return Dashboard(_url(host, listening, token), listening, runs, token)


def try_start(
    directories: Sequence[str], *, host: str = "127.0.0.1", port: int = 0, token: str | None = None
) -> tuple[Dashboard | None, str | None]:
    """The same beside a training, which does not fail for it: the dashboard, or None and why not."""
    try:
        return start(directories, host=host, port=port, token=token), None
    except UserError as error:
        return None, str(error)
    except Exception as error:
        return None, f"There is no dashboard: {reason(error)}."


def is_installed() -> bool:
    """Whether the packages are there; none of them is loaded."""
    return all(importlib.util.find_spec(name) is not None for name in PACKAGES)


def _token(host: str, given: str | None) -> str | None:
    token = given or os.environ.get(TOKEN) or None
    if token is None:
        return None if is_loopback(host) else secrets.token_urlsafe(24)
    if (
        len(token) < SHORTEST_TOKEN
        or not token.isascii()
        or not token.isprintable()
        or set(token) & set(' ";,\\')
    ):
        raise InvalidValue(
            f"The dashboard's token has {len(token)} characters or unusual ones. Give at least {SHORTEST_TOKEN} "
            f"letters and digits in {TOKEN}, or none: then one is made."
        )
    return token


def _listening(host: str, port: int) -> socket.socket:
    if not 0 <= port <= LAST_PORT:
        raise InvalidValue(f"Invalid port {port}: give one from 1 to {LAST_PORT}, or 0 for any.")
    for attempt in [port] if port else [PORT, 0]:
        try:
            return _bound(host, attempt)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or port:
                raise InvalidValue(
                    f"The dashboard cannot listen on {host}:{port or PORT}: {reason(error)}. Give another host "
                    "or port."
                ) from error
    raise AssertionError("a free port was asked for")


def _bound(host: str, port: int) -> socket.socket:
    name = host.strip("[]")
    family, kind, protocol, _, address = socket.getaddrinfo(
        name, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(128)  # who comes before the server is loaded waits for it
    except OSError:
        listening.close()
        raise
    listening.setblocking(False)
    return listening


def _url(host: str, listening: socket.socket, token: str | None) -> str:
    port = listening.getsockname()[1]
    name = platform.node() if host in ("0.0.0.0", "::", "") else host.strip("[]")
    name = f"[{name}]" if ":" in name else name
    return f"http://{name}:{port}/" + (f"?token={quote(token)}" if token else "")
