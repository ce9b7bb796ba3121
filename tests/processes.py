"""Programs that tests start. Where it is the same, as a fork of a process that has TensorFlow or MLflow loaded.

A test about how a program starts, what it imports or what it says while loading starts it by `subprocess`.
"""

from __future__ import annotations

import atexit
import contextlib
import inspect
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from select import POLLIN, poll
from typing import Any

from elasticdl.tracking.mlflow import SENDER, MlflowSender, _is_installed

FORK_SERVER = Path(__file__).with_name("fork_server.py")
READ_AT_IMPORT = ("TF_", "KERAS_", "PYTHON", "PROTOCOL_BUFFERS_", "ARROW_", "GRPC_", "OMP_", "LD_")
HARMLESS_THREADS = {"jemalloc_bg_thd"}
"""pyarrow's allocator starts it, and starts it again in a fork."""
TENSORFLOW, MLFLOW = "tensorflow", "mlflow"


def python(
    *words: str, loaded: str = TENSORFLOW, fork: bool = True, **options: Any
) -> subprocess.Popen[Any]:
    """`python WORDS` with the options of `subprocess.Popen`; sooner, as a fork."""
    command = [sys.executable, *words]
    server = fork_server(loaded) if fork else None
    if server is None or server.differs(options.get("env")):
        return subprocess.Popen(command, **options)
    return Fork(command, way=server.way, **options)


def start_elasticdl(*words: str, **options: Any) -> subprocess.Popen[Any]:
    """`elasticdl WORDS`, whose output can be read as text."""
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return python("-m", "elasticdl", *words, **streams | options)


def run_python(
    *words: str, input: str | None = None, timeout: float = 120, **options: Any
) -> subprocess.CompletedProcess[str]:
    """`python WORDS` to its end, and what it said."""
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with python(*words, stdin=subprocess.PIPE if input else None, **streams, **options) as process:
        try:
            out, err = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def start_nursery(*words: str, env: Mapping[str, str], **options: Any) -> subprocess.Popen[Any]:
    """A nursery of workers that need not load TensorFlow. All that it does is the same."""
    server = _fork_server(TENSORFLOW, frozenset(read_at_import(env).items()))
    command = [sys.executable, *words]
    if server is None:
        return subprocess.Popen(command, env=env, **options)
    return Fork(command, way=server.way, env=env, **options)


class ForkedSender(MlflowSender):
    """A sender that need not load MLflow. All that it does is the same."""

    def __init__(self) -> None:
        if not _is_installed():
            super().__init__()
            return
        self.is_used = False
        self.problem = None
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
        quiet = {"stderr": subprocess.DEVNULL, "start_new_session": True}
        self.process = python("-P", "-m", SENDER, loaded=MLFLOW, **pipes, **quiet)


class Fork(subprocess.Popen[Any]):
    """A process that a fork server starts, and waits for: it is the parent."""

    def __init__(self, args: Sequence[str], *, way: socket.socket, **options: Any) -> None:
        self._way = way
        self._told, self._answer = socket.socketpair()
        self._asking = threading.Lock()
        super().__init__(args, **options)

    def _execute_child(self, *given: Any) -> None:  # type: ignore[override]
        """Where Popen itself would fork, and start another program."""
        asked = inspect.signature(subprocess.Popen._execute_child).bind(self, *given).arguments
        request = {
            "words": [os.fspath(word) for word in asked["args"]][1:],
            "cwd": os.fspath(asked["cwd"] or os.getcwd()),
            "env": dict(os.environ if asked["env"] is None else asked["env"]),
            "new_session": asked["start_new_session"],
            "inherited": list(asked["pass_fds"]),
        }
        streams = (asked["p2cread"], asked["c2pwrite"], asked["errwrite"])
        fds = [number if fd == -1 else fd for number, fd in enumerate(streams)]
        with self._answer:
            message = json.dumps(request).encode()
            given = [*fds, *request["inherited"], self._answer.fileno()]
            socket.send_fds(self._way, [message], given)
        self._answers = self._told.makefile()
        self.pid = int(self._answers.readline())
        self._child_created = True
        pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(asked[name] for name in pipes))

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if not self._asking.acquire(blocking=False):
            return None  # somebody waits for it: it goes on
        with contextlib.ExitStack() as stack:
            stack.callback(self._asking.release)
            return self._ended(0)

    def _wait(self, timeout: float | None) -> int:
        with self._asking:
            code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return code

    def _ended(self, timeout: float | None) -> int | None:
        """The exit code; None when it takes longer."""
        if self.returncode is None:
            asked = poll()
            asked.register(self._told, POLLIN)
            if asked.poll(None if timeout is None else 1000 * timeout):
                self.returncode = int(self._answers.readline())
                self._answers.close()
                self._told.close()
        return self.returncode


@dataclass(frozen=True)
class ForkServer:
    """The way to a fork server, and what it may have read of the environment."""

    way: socket.socket
    read: Mapping[str, str]

    def differs(self, env: Mapping[str, str] | None) -> bool:
        """Whether a module might have read another value than these while it was imported."""
        return read_at_import(os.environ if env is None else env) != self.read


def read_at_import(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(READ_AT_IMPORT)}


def fork_server(loaded: str) -> ForkServer | None:
    """One that has loaded it in an environment like this one; None where forks are not safe."""
    return _fork_server(loaded, frozenset(read_at_import(os.environ).items()))


@cache
def _fork_server(loaded: str, read: frozenset[tuple[str, str]]) -> ForkServer | None:
    """One for all tests of this process. What it reads of the environment is as it is now."""
    if not sys.platform.startswith("linux"):
        return None
    mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its, tempfile.TemporaryFile() as said:
        server = subprocess.Popen(
            [sys.executable, str(FORK_SERVER), loaded, str(its.fileno())],
            pass_fds=[its.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            # Forks would not have the threads of OpenBLAS.
            env={**os.environ, **dict(read), "OPENBLAS_NUM_THREADS": "1"},
        )
        its.close()
        atexit.register(end, server, mine)
        if not (greeting := mine.recv(4096)):
            said.seek(0)
            raise RuntimeError(f"The fork server has ended: {said.read().decode()}")
    threads = [name for name in json.loads(greeting) if name not in HARMLESS_THREADS]
    return ForkServer(mine, dict(read)) if len(threads) == 1 else None


def end(server: subprocess.Popen[bytes], way: socket.socket) -> None:
    way.close()
    server.wait()
