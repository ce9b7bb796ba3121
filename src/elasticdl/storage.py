"""Places: a path on this machine or at any fsspec address, and how something whole gets there.

A local file or directory is written aside, synced and renamed. An object store has no rename that is atomic,
but puts each object whole: there a directory is committed by one file that is written last.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fsspec.core import url_to_fs
from fsspec.registry import known_implementations
from upath import UPath

from elasticdl.errors import (
    ElasticDLError,
    MissingPackage,
    StorageFailure,
    UnknownName,
    nearest,
    reason,
)

__all__ = [
    "children",
    "file_system",
    "is_local",
    "new_directory",
    "place",
    "remove",
    "storage_errors",
    "write_file",
]

_PACKAGES = {
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "s3": "s3fs",
    "s3a": "s3fs",
    "abfs": "adlfs",
    "abfss": "adlfs",
    "az": "adlfs",
    "oss": "ossfs",
    "http": "aiohttp requests",
    "https": "aiohttp requests",
    "hdfs": "pyarrow",
    "webhdfs": "requests",
    "sftp": "paramiko",
    "ssh": "paramiko",
    "smb": "smbprotocol",
    "hf": "huggingface_hub",
}

_REMEDIES = {
    errno.ENOSPC: "Free some space there or give another place.",
    errno.EDQUOT: "The quota is used up: free some space or give another place.",
    errno.EACCES: "Give a place that you may write to.",
    errno.EPERM: "Give a place that you may write to.",
    errno.EROFS: "It is read-only: give another place.",
}


def file_system(url: str) -> tuple[Any, str]:
    """The file system of an address and what it calls the place."""
    protocol = url.split("://", 1)[0] if "://" in url else "file"
    try:
        fs, path = url_to_fs(url)
    except ImportError as e:
        package = _PACKAGES.get(protocol, f"{protocol}fs")
        raise MissingPackage(
            f"{url} needs a driver that is not installed. Install it with: pip install {package}"
        ) from e
    except ValueError as e:
        if protocol in known_implementations:
            raise
        help_ = nearest(protocol, [*_PACKAGES, "file", "memory"])
        raise UnknownName(f"Unknown kind of address {protocol!r} in {url!r}. {help_}") from e
    except OSError as e:
        why = reason(e).splitlines()[0]
        raise StorageFailure(f"Cannot reach {url}: {why}. Check the driver of {protocol}.") from e
    return fs, path


def place(path: str | os.PathLike[str] | UPath) -> UPath:
    """A path that a user named, local or remote; its driver is there.

    >>> place("memory://runs/one").name
    'one'
    """
    text = str(path)
    if text.startswith("file://"):
        text = file_system(text)[1]
    if "://" in text or "::" in text:
        file_system(text)
        return UPath(text)
    return UPath(str(Path(text).expanduser()))


def is_local(where: UPath) -> bool:
    return isinstance(where, Path)


def children(directory: UPath) -> list[UPath]:
    """What is in a directory, sorted by name; nothing when there is none."""
    if not is_local(directory):
        directory.fs.invalidate_cache()  # others write there too
    if not directory.is_dir():
        return []
    return sorted(directory.iterdir(), key=lambda child: child.name)


@contextmanager
def storage_errors(where: UPath | str, *, doing: str = "write to") -> Iterator[None]:
    """What a disk or a driver refuses, in words."""
    try:
        yield
    except ElasticDLError:
        raise
    except OSError as error:
        remedy = _REMEDIES.get(error.errno or 0, "Give another place.")
        if doing != "write to":
            remedy = "Check that you may read it."
        raise StorageFailure(
            error.errno, f"Cannot {doing} {where}: {reason(error).splitlines()[0]}. {remedy}"
        ) from error
    except Exception as error:
        if "://" not in str(where):
            raise
        # A driver's own errors: no credentials, no such bucket, no connection.
        raise StorageFailure(
            f"Cannot {doing} {where}: {reason(error).splitlines()[0]}. Check the address and the "
            "credentials of its driver."
        ) from error


def write_file(where: UPath, data: bytes) -> None:
    """Either the old content or the new, never a part of it."""
    with storage_errors(where):
        if not is_local(where):
            where.fs.pipe_file(where.path, data)
            return
        aside = Path(str(where)).with_name(f".{where.name}.tmp")
        with aside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(str(where))
        _sync(Path(str(where)).parent)


@contextmanager
def new_directory(final: UPath, last: str) -> Iterator[Path]:
    """A local directory to write into, which at a clean end becomes `final`, replacing what was there.

    `last` is the file by which a reader knows that the directory is whole. Nothing is left of a
    directory that failed, and what was there before is still there.
    """
    with storage_errors(final):
        if is_local(final):
            aside = Path(str(final)).with_name(f".{final.name}.tmp")
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir(parents=True)
        else:
            aside = Path(tempfile.mkdtemp(prefix="elasticdl-"))
    try:
        yield aside
        with storage_errors(final):
            if is_local(final):
                _rename(aside, Path(str(final)))
            else:
                _upload(aside, final, last)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def remove(where: UPath) -> None:
    """Remove a file or a whole directory; that it is not there is fine."""
    with storage_errors(where):
        if not is_local(where):
            if where.fs.exists(where.path):
                where.fs.rm(where.path, recursive=True)
        elif where.is_dir() and not where.is_symlink():
            shutil.rmtree(str(where))
        else:
            where.unlink(missing_ok=True)


def _rename(aside: Path, final: Path) -> None:
    for path in aside.rglob("*"):
        _sync(path)
    _sync(aside)
    previous = final.with_name(f".{final.name}.old")
    shutil.rmtree(previous, ignore_errors=True)
    if final.exists():
        final.rename(previous)
    aside.rename(final)
    _sync(final.parent)
    shutil.rmtree(previous, ignore_errors=True)


def _upload(aside: Path, final: UPath, last: str) -> None:
    files = sorted(path for path in aside.rglob("*") if path.is_file())
    remove(final / last)  # from here on what was there before is no longer whole
    remove(final)
    for path in sorted(files, key=lambda path: path == aside / last):
        target = final.joinpath(*path.relative_to(aside).parts)
        target.fs.put_file(str(path), target.path)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
