"""The files of a commit on disk: links that stay inside, and nothing to edit by accident."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

__all__ = ["put_links", "seal"]

_LINK = b"120000"


def put_links(root: Path, listing: bytes) -> None:
    """Make a link of each file that stands for one, and remove those that lead out of `root`.

    `listing` is what `git ls-tree -r -z` printed.
    """
    root = root.resolve()
    links = [
        root / os.fsdecode(name)
        for entry in listing.split(b"\0")
        for mode, _, name in [entry.partition(b"\t")]
        if mode.startswith(_LINK)
    ]
    for link in links:
        target = os.fsdecode(link.read_bytes())
        link.unlink()
        if target and "\0" not in target:
            link.symlink_to(target)
    # Only now: one link may lead to another.
    for link in links:
        if link.is_symlink() and not _is_inside(root, link):
            link.unlink()


def _is_inside(root: Path, link: Path) -> bool:
    try:
        return link.resolve().is_relative_to(root)
    except (OSError, RuntimeError):  # a circle
        return False


def seal(root: Path) -> None:
    """Put the files on the disk for good, and take away the right to write.

    An edit by accident would change what the commit's name stands for.
    """
    for directory, _, files in os.walk(root):
        for path in (Path(directory, name) for name in files):
            if not path.is_symlink():
                with path.open("rb") as file:
                    os.fsync(file.fileno())
                with contextlib.suppress(OSError):
                    path.chmod(path.stat().st_mode & 0o555)
