"""Starts Python programs without loading TensorFlow, or MLflow, for each: they are forks of this process.

    python fork_server.py MODULE SOCKET

`MODULE` names what is loaded. A request is one message on the socket that is inherited: JSON with the words of a
command, its directory and environment, and beside it the file descriptors of its stdin, stdout and stderr, and of
a socket that is told the number of the process, and at its end how it ended. The server ends with the socket.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import os
import runpy
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from types import ModuleType

LARGEST, MOST_FDS = 1 << 20, 16


@dataclass(frozen=True)
class Request:
    """A program to be started, and its three streams."""

    words: list[str]
    cwd: str
    env: dict[str, str]
    new_session: bool
    inherited: Sequence[int]
    """The numbers that more file descriptors have in the program."""
    fds: Sequence[int]
    """Of its streams, then of those."""


def load_tensorflow() -> None:
    """What the commands import, with nothing run: TensorFlow's first operation would start threads."""
    import keras  # noqa: F401
    import pyarrow.csv
    import pyarrow.dataset
    import pyarrow.parquet  # noqa: F401
    import tensorflow as tf

    import elasticdl.artifacts.trained_model
    import elasticdl.cli.predict
    import elasticdl.cli.run
    import elasticdl.cli.train
    import elasticdl.engine.trainer
    import elasticdl.runtime.local  # noqa: F401

    tf.get_logger().setLevel("ERROR")  # as `elasticdl.quiet` does when it is the one to load


def load_mlflow() -> None:
    from elasticdl.tracking import mlflow_replay, mlflow_store  # noqa: F401

    mlflow_store.load_mlflow()


LOADS: dict[str, Callable[[], None]] = {"tensorflow": load_tensorflow, "mlflow": load_mlflow}


class Server:
    """Forks for each request, and tells of each end."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._children: dict[int, socket.socket] = {}
        self._ends, wake = socket.socketpair()
        for end in (self._ends, wake):
            end.setblocking(False)
        self._wake = wake
        self._handlers = {
            signal.SIGCHLD: signal.signal(signal.SIGCHLD, lambda *_: None),
            # The Ctrl-C of whoever runs the tests.
            signal.SIGINT: signal.signal(signal.SIGINT, signal.SIG_IGN),
        }
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)

    def serve(self) -> Request | None:
        """Until the tests have ended. In each fork: what it is to be."""
        with DefaultSelector() as selector:
            for source in (self._requests, self._ends):
                selector.register(source, EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is self._ends:
                        self._ends.recv(4096)
                        self._reap()
                    elif not (message := self._receive()):
                        return None
                    elif request := self._fork(*message):
                        return request

    def _receive(self) -> tuple[bytes, list[int]] | None:
        message, fds, _, _ = socket.recv_fds(self._requests, LARGEST, MOST_FDS)
        return (message, fds) if message else None

    def _fork(self, message: bytes, fds: list[int]) -> Request | None:
        *given, answer = fds
        told = socket.socket(fileno=answer)
        child = os.fork()
        if not child:
            self._leave(told)
            return Request(**json.loads(message), fds=given)
        for fd in given:
            os.close(fd)
        self._children[child] = told
        told.sendall(f"{child}\n".encode())
        return None

    def _leave(self, told: socket.socket) -> None:
        """In the fork: nothing of the server is left in it."""
        signal.set_wakeup_fd(-1)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        for end in (self._requests, self._ends, self._wake, told, *self._children.values()):
            end.close()

    def _reap(self) -> None:
        while self._children:
            child, status = os.waitpid(-1, os.WNOHANG)
            if not child:
                return
            # Whoever started it may not ask any more.
            with self._children.pop(child) as told, contextlib.suppress(OSError):
                told.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def become(request: Request) -> None:
    """Make this process what a new one would be."""
    if request.new_session:
        os.setsid()
    # First out of each other's way.
    aside = [fcntl.fcntl(fd, fcntl.F_DUPFD, 100) for fd in request.fds]
    for fd in request.fds:
        os.close(fd)
    for number, fd in zip((0, 1, 2, *request.inherited), aside, strict=True):
        os.dup2(fd, number)
        os.close(fd)
    os.chdir(request.cwd)
    os.environ.clear()
    os.environ.update(request.env)
    tempfile.tempdir = None  # looked for again, in this environment
    sys.stdin = open(0, encoding="utf-8")  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1)  # noqa: SIM115
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()  # every fork would draw the same numbers


def run(words: list[str]) -> None:
    """The words after `python`. The first directory of sys.path is this file's until then."""
    match words:
        case ["-P", "-m", module, *args]:
            sys.path[:1], sys.argv[:] = [], [module, *args]
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case ["-m", module, *args]:
            sys.path[0], sys.argv[:] = os.getcwd(), [module, *args]
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case ["-c", code, *args]:
            sys.path[0], sys.argv[:] = "", ["-c", *args]
            sys.modules["__main__"] = main_module = ModuleType("__main__")
            exec(compile(code, "<string>", "exec"), vars(main_module))  # noqa: S102
        case [script, *args]:
            sys.path[0], sys.argv[:] = os.path.dirname(os.path.abspath(script)), [script, *args]
            runpy.run_path(script, run_name="__main__")


def main() -> None:
    """Here a fork runs its program too, so that it ends as Python ends: with codes, tracebacks and all."""
    requests = socket.socket(fileno=int(sys.argv[2]))
    LOADS[sys.argv[1]]()
    gc.collect()
    gc.freeze()  # what is shared with the forks is not to be touched
    threads = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
    requests.sendall(json.dumps(threads).encode())
    if (request := Server(requests).serve()) is not None:
        become(request)
        run(request.words)


if __name__ == "__main__":
    main()
