"""What is in a directory and in its files, at any address; nothing outside of the directories that were given.

A local directory is looked at with one `scandir`, a remote one with one listing: a page that polls asks often.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from upath import UPath

from elasticdl.errors import StorageFailure, reason
from elasticdl.storage import is_local

__all__ = ["Entry", "entries", "is_inside", "read_bytes"]

CHANGED = ("ETag", "etag", "md5Hash", "LastModified", "mtime", "updated", "modified", "created")
"""By what the drivers of remote places tell that a file is another one; the first that is there."""


@dataclass(frozen=True)
class Entry:
    """A file or a directory.

    Attributes:
      mark: changes when the content does.
      modified: in seconds since 1970, where it is known.
    """

    name: str
    is_directory: bool
    bytes: int
    mark: str
    modified: float | None = None
    is_link: bool = False


def entries(directory: UPath, root: UPath) -> dict[str, Entry]:
    """What is in a directory, by name; nothing when it is not there. Links that lead out of `root` are left out.

    Raises:
      StorageFailure: it cannot be read.
    """
    with _failures(directory):
        try:
            return _local(directory, root) if is_local(directory) else _remote(directory)
        except (FileNotFoundError, NotADirectoryError):
            return {}


def is_inside(path: UPath, root: UPath) -> bool:
    """Whether a path, with all its links followed, is below the root or is it."""
    if not is_local(path):
        return str(path) == str(root) or str(path).startswith(str(root).rstrip("/") + "/")
    real, top = os.path.realpath(str(path)), os.path.realpath(str(root))
    return real == top or real.startswith(top.rstrip("/") + "/")


def read_bytes(file: UPath, root: UPath, start: int = 0, end: int | None = None) -> bytes:
    """A part of a file; nothing of one that is not there, is no regular file or is a link that leads out of `root`."""
    with _failures(file):
        try:
            if not is_local(file):
                return bytes(file.fs.cat_file(file.path, start=start or None, end=end))
            return _read_local(str(file), root, start, end)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return b""


def _read_local(path: str, root: UPath, start: int, end: int | None) -> bytes:
    if not is_inside(UPath(path), root):
        return b""
    # A pipe would let us wait for ever.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return b""
        file.seek(start)
        return file.read() if end is None else file.read(max(0, end - start))


def _local(directory: UPath, root: UPath) -> dict[str, Entry]:
    found = {}
    with os.scandir(str(directory)) as scan:
        for one in scan:
            if one.is_symlink() and not is_inside(UPath(one.path), root):
                continue
            try:
                about = one.stat()
            except OSError:  # it has vanished since, or leads nowhere
                continue
            is_directory = stat.S_ISDIR(about.st_mode)
            if is_directory or stat.S_ISREG(about.st_mode):
                mark = f"{about.st_size}-{about.st_mtime_ns}-{about.st_ino}"
                found[one.name] = Entry(
                    one.name, is_directory, about.st_size, mark, about.st_mtime, one.is_symlink()
                )
    return found


def _remote(directory: UPath) -> dict[str, Entry]:
    directory.fs.invalidate_cache()
    told = directory.fs.ls(directory.path, detail=True)
    found = (_told(one) for one in told)
    own = directory.path.strip("/").rpartition("/")[2]
    return {one.name: one for one in found if one.name and (one.is_directory or one.name != own)}


def _told(about: dict[str, Any]) -> Entry:
    size = int(about.get("size") or 0)
    changed = next((about[key] for key in CHANGED if about.get(key)), "")
    when: Any = about.get("LastModified") or about.get("mtime") or about.get("created")
    seconds = when.timestamp() if hasattr(when, "timestamp") else when
    modified = float(seconds) if isinstance(seconds, int | float) else None
    name = str(about["name"]).rstrip("/").rpartition("/")[2]
    return Entry(name, about.get("type") == "directory", size, f"{size}-{changed}", modified)


@contextmanager
def _failures(where: UPath) -> Iterator[None]:
    """What a disk or a driver refuses, in words; that nothing is there goes through."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, StorageFailure):
        raise
    except Exception as error:
        why = reason(error).splitlines()[0]
        raise StorageFailure(f"Cannot read {where}: {why}.") from error
