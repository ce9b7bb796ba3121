"""Registries on loopback: one that takes everything, one with a password, one that breaks off; and an index for pip."""

from __future__ import annotations

import contextlib
import functools
import http.server
import select
import socket
import subprocess
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

USER, PASSWORD = "scott", "tiger"
_HASH = "$2b$04$bGwJ2U0HwJ.x3RhOY2Sl0edZ3XencMcTRSxs8U9ilhGBL8WWuD4q."
"""Of the password, in the only form that the registry reads."""

BYTES_BEFORE_THE_END = 300_000

_CONFIG = """
version: 0.1
log: {{level: error, accesslog: {{disabled: true}}}}
storage: {{filesystem: {{rootdirectory: {directory}}}}}
http: {{addr: "{address}"}}
"""
_AUTH = "auth: {{htpasswd: {{realm: tests, path: {file}}}}}\n"


class Registries:
    """What a push may meet; all of them run while this is entered."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.open, self.locked = _free_address(), _free_address()
        self.absent = _free_address()
        self._breaking = _Breaking(self.open)
        self.breaking = self._breaking.address
        self._packages = _Packages(directory / "packages")
        self.index = f"{self._packages.address}/main"
        self.extra_index = f"{self._packages.address}/extra"
        self._running = contextlib.ExitStack()

    @property
    def addresses(self) -> list[str]:
        return [self.open, self.locked, self.absent, self.breaking]

    def __enter__(self) -> Registries:
        passwords = self.directory / "htpasswd"
        passwords.write_text(f"{USER}:{_HASH}\n")
        self._start(self.open, "open", "")
        self._start(self.locked, "locked", _AUTH.format(file=passwords))
        self._running.enter_context(self._breaking)
        self._running.enter_context(self._packages)
        return self

    def __exit__(self, *error: object) -> None:
        self._running.close()

    @property
    def has_broken_off(self) -> bool:
        return self._breaking.left <= 0

    def _start(self, address: str, name: str, auth: str) -> None:
        config = self.directory / f"{name}.yml"
        config.write_text(_CONFIG.format(directory=self.directory / name, address=address) + auth)
        command = ["docker-registry", "serve", str(config)]
        self._running.enter_context(started(command, self.directory / f"{name}.log"))
        wait_for(lambda: _answers(address), f"the registry at {address}")


class _Breaking:
    """Stands before a registry, and breaks every connection off once much of an image has come."""

    def __init__(self, behind: str) -> None:
        self._behind = behind.split(":")
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.left = BYTES_BEFORE_THE_END
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> _Breaking:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=[client], daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        host, port = self._behind
        with (
            client,
            socket.create_connection((host, int(port))) as server,
            contextlib.suppress(OSError),
        ):
            while self.left > 0:
                ready, _, _ = select.select([client, server], [], [], 1)
                for source in ready:
                    data = source.recv(1 << 16)
                    if not data:
                        return
                    if source is client:
                        self.left -= len(data)
                    (server if source is client else client).sendall(data)


class _Packages:
    """An index of packages: `main` has none, `extra` has `tiny-words`."""

    def __init__(self, directory: Path) -> None:
        wheel = directory / "extra" / "tiny-words" / "tiny_words-1.0-py3-none-any.whl"
        wheel.parent.mkdir(parents=True)
        (directory / "main").mkdir()
        write_wheel(wheel)
        handler = functools.partial(_Quiet, directory=str(directory))
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> _Packages:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


def write_wheel(file: Path) -> None:
    """A package of one module, as pip installs it."""
    about = "tiny_words-1.0.dist-info"
    with zipfile.ZipFile(file, "w") as wheel:
        wheel.writestr("tiny_words.py", "UNITS = 8\n")
        wheel.writestr(
            f"{about}/METADATA", "Metadata-Version: 2.1\nName: tiny-words\nVersion: 1.0\n"
        )
        wheel.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{about}/RECORD", "tiny_words.py,,\n")


@contextlib.contextmanager
def started(
    command: list[str], log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    """A program that runs meanwhile."""
    with (
        log.open("wb") as out,
        subprocess.Popen(command, env=environment, stdout=out, stderr=out) as process,
    ):
        try:
            yield
        finally:
            process.terminate()


def wait_for(happened: Callable[[], bool], what: str, within_s: float = 30) -> None:
    end = time.monotonic() + within_s
    while not happened():
        assert time.monotonic() < end, f"{what} does not come up"
        threading.Event().wait(0.02)


def _free_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return f"127.0.0.1:{probe.getsockname()[1]}"


def _answers(address: str) -> bool:
    host, port = address.split(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 1):
        return True
    return False
