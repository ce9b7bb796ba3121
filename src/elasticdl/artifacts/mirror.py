"""Files that grow, at a place where files cannot grow: written here, copied there now and then.

An object store knows whole objects only, and TensorFlow's writers know local files only. What a run appends
to (its events, its curves) is written to a directory of this machine and copied every few seconds and at the end.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from pathlib import Path

from upath import UPath

from elasticdl.errors import StorageFailure
from elasticdl.storage import is_local, storage_errors

__all__ = ["Mirror"]

SYNC_S = 10.0


class Mirror:
    """Local paths for places of any kind. Nothing is copied for places that are local.

    with Mirror() as mirror:
        file = mirror.path(place("s3://bucket/run/events.jsonl")).open("a")
    """

    def __init__(self) -> None:
        self._root: Path | None = None
        self._pairs: list[tuple[Path, UPath]] = []
        self._copied: dict[Path, tuple[int, int]] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mirror", daemon=True)

    def __enter__(self) -> Mirror:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        try:
            self.close()
        except StorageFailure:
            if error is None:  # else what failed first is the thing to tell
                raise

    def path(self, where: UPath) -> Path:
        """Where to write what belongs at `where`: there itself, or a copy of what is there."""
        if is_local(where):
            return Path(str(where))
        if self._root is None:
            self._root = Path(tempfile.mkdtemp(prefix="elasticdl-run-"))
            self._thread.start()
        local = self._root / str(len(self._pairs)) / where.name
        local.parent.mkdir()
        with storage_errors(where, doing="read"):
            where.fs.invalidate_cache()
            if where.fs.isfile(where.path):
                where.fs.get_file(where.path, str(local))
                self._copied[local] = _stamp(local)
        self._pairs.append((local, where))
        return local

    def close(self) -> None:
        """Copy what is left, and forget the local files."""
        if self._root is None:
            return
        self._ended.set()
        self._thread.join()
        try:
            self._sync()
        finally:
            shutil.rmtree(self._root, ignore_errors=True)
            self._root = None

    def _run(self) -> None:
        while not self._ended.wait(SYNC_S):
            try:
                self._sync()
            except StorageFailure:
                continue  # a network that is away for a while must not end a training; the end tries again

    def _sync(self) -> None:
        for local, where in list(self._pairs):
            files = [local] if local.is_file() else sorted(local.rglob("*"))
            for file in files:
                if file.is_file():
                    self._copy(file, where.joinpath(*file.relative_to(local).parts))

    def _copy(self, file: Path, where: UPath) -> None:
        stamp = _stamp(file)
        if self._copied.get(file) == stamp:
            return
        with storage_errors(where):
            where.fs.put_file(str(file), where.path)
        self._copied[file] = stamp


def _stamp(file: Path) -> tuple[int, int]:
    status = os.stat(file)
    return status.st_mtime_ns, status.st_size
