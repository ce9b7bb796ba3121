"""One process at a time: who writes to a directory, on a disk or at a remote place."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import threading
import time
from pathlib import Path
from typing import IO

from upath import UPath

from elasticdl.errors import OutputExists
from elasticdl.storage import is_local, storage_errors

__all__ = ["Hold"]

BEAT_S = 10.0
STALE_S = 60.0


class Hold:
    """A directory is held from `take` to `release`.

    On a disk by a lock of the operating system, which ends with the process. At a remote place by a
    file that is written anew every few seconds: one that is old was left by a process that died.
    """

    def __init__(self, directory: UPath) -> None:
        self._directory = directory
        self._file = directory / ".lock"
        self._lock: IO[str] | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self) -> None:
        if is_local(self._directory):
            self._take_local()
        else:
            self._take_remote()

    def release(self) -> None:
        if self._lock is not None:
            self._file.unlink(missing_ok=True)
            self._lock.close()
            self._lock = None
        if self._thread is not None:
            self._ended.set()
            self._thread.join()
            self._thread = None
            with contextlib.suppress(
                Exception
            ):  # it grows old by itself, and there may be worse to tell
                self._file.unlink(missing_ok=True)

    def _take_local(self) -> None:
        lock = Path(str(self._file)).open("w")  # noqa: SIM115
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise self._held("") from None
        self._lock = lock

    def _take_remote(self) -> None:
        with storage_errors(self._file):
            self._file.fs.invalidate_cache()
            if self._file.exists() and (holder := _living(self._file.read_bytes())):
                raise self._held(f" ({holder}). If it was killed, its hold ends after a minute")
            self._beat()
        self._thread = threading.Thread(target=self._run, name="hold", daemon=True)
        self._thread.start()

    def _held(self, detail: str) -> OutputExists:
        return OutputExists(
            f"Another run is writing to {self._directory} right now{detail}. Wait for it, or write to "
            "another directory."
        )

    def _beat(self) -> None:
        holder = {"host": platform.node(), "process": os.getpid(), "time": time.time()}
        self._file.fs.pipe_file(self._file.path, json.dumps(holder).encode())

    def _run(self) -> None:
        while not self._ended.wait(BEAT_S):
            try:
                self._beat()
            except Exception:
                continue  # the network is away; the next beat may pass


def _living(content: bytes) -> str:
    """Who holds it, in words; nothing when that process is known or believed to be dead."""
    try:
        holder = json.loads(content)
        host, process, beat = str(holder["host"]), int(holder["process"]), float(holder["time"])
    except (ValueError, KeyError, TypeError):
        return ""
    if time.time() - beat > STALE_S:
        return ""
    if host == platform.node() and process != os.getpid() and not _runs(process):
        return ""
    return f"process {process} on {host}"


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
