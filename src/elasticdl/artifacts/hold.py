"""One process at a time: who writes to a directory, on a disk or at a remote place."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from upath import UPath

from elasticdl.errors import OutputExists
from elasticdl.storage import is_local, storage_errors

__all__ = ["Hold", "Holder", "holder_of", "in_use"]

BEAT_S = 10.0
STALE_S = 60.0
FILE = ".lock"
LOOK_S = 0.05
LOOKS = 3
"""Who looks whether a directory is held locks it for an instant: that must not keep a run from beginning."""
ASKED_EVERY_S = 0.2


@dataclass(frozen=True)
class Holder:
    """Who holds a directory; the host is empty and the numbers are 0 where it is not known.

    Attributes:
      since: when it began, in seconds since 1970.
    """

    host: str = ""
    process: int = 0
    since: float = 0.0

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}" if self.host else "another process"


class Hold:
    """A directory is held from `take` to `release`.

    On a disk by a lock of the operating system, which ends with the process. At a remote place by a
    file that is written anew every few seconds: one that is old was left by a process that died.

    Args:
      wish: a file by which others ask the holder to end.
    """

    def __init__(self, directory: UPath, wish: UPath | None = None) -> None:
        self._directory = directory
        self._file = directory / FILE
        self._wish = wish
        self._asked = threading.Event()
        self._looked = 0.0
        self._since = 0.0
        self._lock: IO[str] | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self) -> None:
        self._since = round(time.time(), 3)
        if is_local(self._directory):
            self._take_local()
        else:
            self._take_remote()

    def is_asked_to_end(self) -> bool:
        """Whether somebody has asked for it. Cheap enough for every step of a training."""
        if self._lock is not None and self._wish is not None:
            now = time.monotonic()
            if now - self._looked >= ASKED_EVERY_S:
                self._looked = now
                self._note_wish(self._wish)
        return self._asked.is_set()

    def _note_wish(self, wish: UPath) -> None:
        if wish.exists():
            self._asked.set()

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
        lock = Path(str(self._file)).open("a+")  # noqa: SIM115
        if not _locked(lock):
            lock.close()
            raise in_use(self._directory, "")
        self._lock = lock
        with contextlib.suppress(OSError):  # a full disk; the lock itself needs no room
            os.ftruncate(lock.fileno(), 0)
            os.write(lock.fileno(), json.dumps(self._me()).encode())

    def _take_remote(self) -> None:
        with storage_errors(self._file):
            self._file.fs.invalidate_cache()
            if self._file.exists() and (holder := _living(self._file.read_bytes())):
                detail = f" ({holder}). If it was killed, its hold ends after a minute"
                raise in_use(self._directory, detail)
            self._beat()
        self._thread = threading.Thread(target=self._run, name="hold", daemon=True)
        self._thread.start()

    def _beat(self) -> None:
        self._file.fs.pipe_file(self._file.path, json.dumps(self._me()).encode())

    def _me(self) -> dict[str, Any]:
        return {
            "host": platform.node(),
            "process": os.getpid(),
            "time": time.time(),
            "since": self._since,
        }

    def _run(self) -> None:
        while not self._ended.wait(BEAT_S):
            try:
                self._beat()
                if self._wish is not None:
                    self._wish.fs.invalidate_cache()
                    self._note_wish(self._wish)
            except Exception:
                continue  # the network is away; the next beat may pass


def in_use(directory: UPath, detail: str) -> OutputExists:
    """What is said to who wants a directory that somebody holds."""
    return OutputExists(
        f"Another run is writing to {directory} right now{detail}. Wait for it, or write to another directory."
    )


def holder_of(directory: UPath) -> Holder | None:
    """Who holds a directory right now; None when nobody does."""
    file = directory / FILE
    with storage_errors(file, doing="read"):
        if not is_local(directory):
            file.fs.invalidate_cache()
            try:
                return _living(file.read_bytes())
            except FileNotFoundError:
                return None
        try:
            lock = Path(str(file)).open("r")  # noqa: SIM115
        except FileNotFoundError:
            return None
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return _read(lock.read())[0]
    return None


def _locked(lock: IO[str]) -> bool:
    for look in range(LOOKS):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            if look + 1 < LOOKS:
                time.sleep(LOOK_S)
    return False


def _read(content: str | bytes) -> tuple[Holder, float]:
    """Who wrote it, and when."""
    try:
        told = json.loads(content)
        beat = float(told["time"])
        since = float(told.get("since", 0.0))
        return Holder(str(told["host"]), int(told["process"]), since), beat
    except (ValueError, KeyError, TypeError, AttributeError):
        return Holder(), 0.0


def _living(content: bytes) -> Holder | None:
    """Who holds a remote place; None when that process is known or believed to be dead."""
    holder, beat = _read(content)
    if time.time() - beat > STALE_S:
        return None
    if holder.host == platform.node() and not _runs(holder.process):
        return None
    return holder


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
