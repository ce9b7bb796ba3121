"""Tensors by name in a safetensors file."""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elasticdl.errors import reason

__all__ = ["checksum", "save_tensors"]


_PREFIX = "Error while serializing: I/O error: "


def save_tensors(path: Path, tensors: Mapping[str, Any]) -> None:
    """Write them. The library has words for what a disk refuses and no number: it gets one here."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    try:
        save_file(dict(tensors), path)
    except SafetensorError as error:
        number = errno.ENOSPC if "No space" in str(error) else errno.EIO
        raise OSError(number, reason(error).removeprefix(_PREFIX)) from error


def checksum(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
