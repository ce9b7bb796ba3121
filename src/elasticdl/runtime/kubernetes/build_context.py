"""The files that an engine builds an image of: exactly those that go in, packed the same way every time."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from elasticdl.contract.snapshot import REQUIREMENTS
from elasticdl.errors import InvalidValue, NotFound
from elasticdl.runtime.elastic.zoo_files import ZooFiles, sort_zoo_files
from elasticdl.runtime.kubernetes.logins import check_logins
from elasticdl.storage import storage_errors

__all__ = ["IGNORE_FILE", "OWN", "ZOO", "files_of_zoo", "left_out_line", "pack"]

OWN = "elasticdl"
ZOO = "model_zoo"
IGNORE_FILE = ".dockerignore"
SHOWN = 3


def files_of_zoo(zoo: Path, include: Sequence[str] = ()) -> ZooFiles:
    """Which files of a zoo go into an image, by the rules of `sort_zoo_files` and of its `.dockerignore`.

    Raises:
      NotFound: there is no such directory.
      InvalidValue: that is too much to be a zoo, a pattern names nothing, or a file for pip has credentials.
    """
    if not zoo.is_dir():
        raise NotFound(
            f"There is no model zoo {zoo}. Give --model_zoo a directory of this machine."
        )
    with storage_errors(str(zoo), doing="read"):
        found = sort_zoo_files(zoo, include)
        for pattern in include:
            if not sort_zoo_files(zoo, [pattern]).asked:
                raise InvalidValue(
                    f"Invalid image_include {pattern!r}: no file of the model zoo {zoo} is called so. "
                    "Give the name, or the path below the zoo, of a file: *.bin or words/*.txt."
                )
        ignored = _ignored(zoo)
        kept = {*found.asked, REQUIREMENTS}
        taken = [name for name in found.taken if name in kept or not ignored(name)]
        check_logins(zoo, [name for name in taken if name not in found.asked])
    return ZooFiles(
        taken,
        [name for name in found.left_out if not ignored(name)],
        found.asked,
    )


def _ignored(zoo: Path) -> Callable[[str], bool]:
    from docker.utils.build import PatternMatcher  # type: ignore[import-untyped]

    file = zoo / IGNORE_FILE
    lines = file.read_text("utf-8-sig", "replace").splitlines() if file.is_file() else []
    said = [line.strip() for line in lines]
    matcher = PatternMatcher([line for line in said if line and not line.startswith("#")])
    return lambda name: bool(matcher.matches(name))


def left_out_line(left_out: Sequence[str]) -> str:
    """What a user should know of files that stay here.

    >>> left_out_line([".env"]).partition(": .env")[0]
    'Not in the image: 1 file of the model zoo that looks like data or a secret'
    """
    more = f" and {len(left_out) - SHOWN} more" if len(left_out) > SHOWN else ""
    names = ", ".join(left_out[:SHOWN]) + more
    said = "1 file of the model zoo that looks like data or a secret"
    if len(left_out) > 1:
        said = f"{len(left_out)} files of the model zoo that look like data or secrets"
    return f"Not in the image: {said}: {names}. To take one: --image_include=PATTERN"


def pack(archive: IO[bytes], own: dict[str, bytes], zoo: Path | None, names: Sequence[str]) -> str:
    """Write the context: files of our own by their names, and those of a zoo. Returns what it hashes to."""
    with storage_errors(tempfile.gettempdir()), tarfile.open(fileobj=archive, mode="w") as tar:
        for name, content in own.items():
            tar.addfile(_entry(name, len(content)), io.BytesIO(content))
        if zoo is not None:
            directory = tarfile.TarInfo(ZOO)  # also when it is empty
            directory.type, directory.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(directory)
            for name in names:
                _add(tar, f"{ZOO}/{name}", zoo / name)
    archive.seek(0)
    hashed = hashlib.sha256()
    while piece := archive.read(1 << 20):
        hashed.update(piece)
    archive.seek(0)
    return hashed.hexdigest()


def _add(tar: tarfile.TarFile, name: str, file: Path) -> None:
    with storage_errors(str(file), doing="read"), file.open("rb") as content:
        status = os.fstat(content.fileno())
        runs = status.st_mode & 0o100
        tar.addfile(_entry(name, status.st_size, 0o755 if runs else 0o644), content)


def _entry(name: str, size: int, mode: int = 0o644) -> tarfile.TarInfo:
    """Without owner and time, by which no layer should differ."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, mode
    return entry
