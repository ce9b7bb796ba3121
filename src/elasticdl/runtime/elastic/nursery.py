"""Workers as forks of one process that has TensorFlow loaded, which takes seconds of a processor.

    python -m elasticdl.runtime.elastic.nursery LISTENER LIFE SOCKET

Ray starts a worker by a command. On a Ray of the job's own that is `cradle.py`: it hands the rest of the command, its
directory, environment and streams over on the socket, and lives as long as the fork that is made here.

A fork has only the thread that forks, so nothing but imports happens here: TensorFlow's first operation and Ray's
first connection start threads. Ray reads the environment while it is imported, so it is with the first worker's:
all of them belong to one job of one Ray.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import Any

__all__ = ["FORKS", "Nursery"]

FORKS = sys.platform.startswith("linux")
"""Whether a process that has TensorFlow loaded can be forked here."""

MODULES = (
    "elasticdl.runtime.elastic.member_training",
    "elasticdl.runtime.elastic.sharing",
    "elasticdl.runtime.elastic.worker",
)
RAYS_MODULE = "ray._private.workers.default_worker"
ALONE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Else NumPy starts threads when it is imported."""
HARMLESS_THREADS = {"jemalloc_bg_thd"}
"""pyarrow's allocator starts it, and starts it again in a fork."""
LARGEST = 1 << 20
FIRST_TO_GO = "1000"
"""Where memory is short, the system is to end workers: nothing is lost with them. Ray sets it for what it starts."""


def start_python(*words: str, **options: Any) -> subprocess.Popen[Any]:
    return subprocess.Popen([sys.executable, *words], **options)


class Nursery:
    """The process, which ends with this one.

    Args:
      directory: where the socket is, and nobody else may enter.
      variables: what workers have in their environment.
    """

    def __init__(self, directory: Path, variables: Mapping[str, str]) -> None:
        path = directory / "n"
        cradle = Path(__file__).with_name("cradle.py")
        self.command = shlex.join([sys.executable, "-IS", str(cradle), str(path)])
        """What Ray is to start instead of Python, by a shell."""
        self._life, life = socket.socketpair()
        with life, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(str(path))
            listener.listen(64)
            given = (listener.fileno(), life.fileno())
            self._process = start_python(
                "-m",
                __name__,
                *map(str, given),
                str(path),
                pass_fds=given,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **variables, **ALONE},
                start_new_session=True,  # a Ctrl-C is for the command, which ends all
            )

    def end(self) -> None:
        """It ends all that are left, and itself."""
        self._life.close()
        self._process.wait()


@dataclass(frozen=True)
class _Birth:
    """What a fork is to become."""

    words: list[str]
    cwd: str
    env: dict[str, str]
    streams: list[int]


class _Server:
    """Forks for each connection, and tells how the fork ended; a fork whose connection ends is ended."""

    def __init__(self, listener: socket.socket, life: socket.socket) -> None:
        self._listener, self._life = listener, life
        self._children: dict[int, socket.socket] = {}
        self._ends, self._wake = socket.socketpair()
        for end in (self._ends, self._wake):
            end.setblocking(False)
        self._handler = signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        self._selector = DefaultSelector()
        for source in (listener, life, self._ends):
            self._selector.register(source, EVENT_READ)

    def serve(self) -> _Birth | None:
        """To the end. In each fork: what it is to become."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._listener:
                    connection, _ = self._listener.accept()
                    if birth := self._fork(connection):
                        return birth
                elif key.fileobj is self._ends:
                    self._ends.recv(4096)
                    self._reap()
                elif key.fileobj is self._life:
                    for child in self._children:
                        _kill(child)
                    return None
                else:  # the cradle was killed by Ray, which does not want the worker any more
                    self._selector.unregister(key.fileobj)
                    _kill(key.data)

    def _fork(self, connection: socket.socket) -> _Birth | None:
        message, streams, _, _ = socket.recv_fds(connection, LARGEST, 3)
        if not message:
            connection.close()
            return None
        asked = json.loads(message)
        if RAYS_MODULE not in sys.modules:
            os.environ.update(asked["env"])
            importlib.import_module(RAYS_MODULE)
        child = os.fork()
        if not child:
            self._leave(connection)
            return _Birth(**asked, streams=streams)
        for fd in streams:
            os.close(fd)
        self._children[child] = connection
        self._selector.register(connection, EVENT_READ, child)
        with contextlib.suppress(OSError):
            connection.send(str(child).encode())
        return None

    def _leave(self, connection: socket.socket) -> None:
        """In the fork: nothing of the server is left in it."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, self._handler)
        self._selector.close()
        sockets = (self._listener, self._life, self._ends, self._wake, connection)
        for one in (*sockets, *self._children.values()):
            one.close()

    def _reap(self) -> None:
        while self._children:
            child, status = os.waitpid(-1, os.WNOHANG)
            if not child:
                return
            connection = self._children.pop(child)
            with contextlib.suppress(KeyError):
                self._selector.unregister(connection)
            with connection, contextlib.suppress(OSError):
                connection.send(str(os.waitstatus_to_exitcode(status)).encode())


def _kill(child: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)


def _become(birth: _Birth) -> None:
    """Make this process what Ray would have started."""
    import numpy as np

    os.setsid()  # Linux may share processors out by sessions: in one with the others, a newcomer was given next to none
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(FIRST_TO_GO)
    for number, fd in enumerate(birth.streams):
        os.dup2(fd, number)
        os.close(fd)
    os.chdir(birth.cwd)
    os.environ.clear()
    os.environ.update(birth.env)
    given = [path for path in birth.env.get("PYTHONPATH", "").split(os.pathsep) if path]
    known = [path for path in sys.path[1:] if path not in given]
    sys.argv[:] = birth.words
    sys.path[:] = [os.path.dirname(birth.words[0]), *given, *known]
    np.random.seed()  # every fork would draw the same numbers


def _main() -> None:
    from elasticdl.quiet import import_tensorflow

    listener, life = (socket.socket(fileno=int(word)) for word in sys.argv[1:3])
    import_tensorflow()
    for name in MODULES:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # what is shared with the forks is not to be touched
    threads = {path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")}
    if len(os.listdir("/proc/self/task")) > 1 + len(threads & HARMLESS_THREADS):
        return  # a fork would not be whole: cradles start workers by themselves
    if birth := _Server(listener, life).serve():
        _become(birth)
        runpy.run_path(birth.words[0], run_name="__main__")


if __name__ == "__main__":
    _main()
