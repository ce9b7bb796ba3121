"""Whether data is still what it was: the size of each file, and what its file system says of its content."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence

from elasticdl.data.files import File, for_each

__all__ = ["stamp"]

_SAID = (
    "md5Hash",
    "crc32c",
    "content_md5",
    "ETag",
    "etag",
    "checksum",
    "LastModified",
    "last_modified",
    "updated",
    "mtime",
    "modified",
    "created",
)
"""What drivers call it, the best first: a checksum, else a time."""


def stamp(files: Sequence[File]) -> str:
    """A line that is another one when a file was altered.

    >>> stamp([])
    'no files'
    """
    if not files:
        return "no files"
    lines = "\n".join(sorted(for_each(files, _line)))
    digest = hashlib.sha256(lines.encode()).hexdigest()[:16]
    number = "1 file" if len(files) == 1 else f"{len(files):,} files"
    return f"{number}, {sum(file.size for file in files):,} bytes ({digest})"


def _line(file: File) -> str:
    return f"{file.url}\t{file.size}\t{_said(file)}"


def _said(file: File) -> str:
    if file.path == file.url:  # on this machine; the time of what a link leads to
        return str(os.stat(file.path).st_mtime_ns)
    try:
        info = file.fs.info(file.path)
    except OSError:
        return ""  # reading it will tell
    return next((f"{name} {info[name]}" for name in _SAID if info.get(name)), "")
