"""What `elasticdl new` writes: a project with five components, a config and a small data set."""

from __future__ import annotations

import csv
import io
import json
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING

from elasticdl.errors import InvalidValue, OutputExists
from elasticdl.storage import storage_errors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Written", "write_project"]

TEMPLATE = "project_template"
DIGITS = "digits.npz"
SCHEMA = "config.schema.json"
PARTS = {"train": 600, "validation": 150, "test": 150}
_RENAMED = {"gitignore": ".gitignore"}  # packaging tools leave dotfiles out
_SIDE, _MARGIN = 20, 4


@dataclass(frozen=True)
class Written:
    """What was written."""

    directory: Path
    num_files: int


def write_project(directory: str | os.PathLike[str]) -> Written:
    """Write the example project into a new or empty directory.

    Raises:
      OutputExists: there is something in it.
    """
    where = Path(os.path.abspath(Path(directory).expanduser()))
    if "://" in str(directory):
        raise InvalidValue(f"Invalid project {directory!s}: give a directory on this machine.")
    with storage_errors(str(where)):
        if where.exists() and (not where.is_dir() or any(where.iterdir())):
            raise OutputExists(f"{where} is there and not empty. Give a new directory.")
        count = 0
        for name, content in _contents(where.name):
            path = where / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            count += 1
    return Written(where, count)


def _contents(project: str) -> Iterator[tuple[str, bytes]]:
    from elasticdl.experiments.config import json_schema

    root = files("elasticdl.experiments") / TEMPLATE
    for name, file in _below(root, ""):
        text = file.read_text(encoding="utf-8")
        # As JSON, which YAML can read: a directory may have any name.
        quoted = json.dumps(project, ensure_ascii=False)
        yield name, text.replace('"PROJECT_NAME"', quoted).replace("PROJECT_NAME", project).encode()
    yield SCHEMA, (json.dumps(json_schema(), indent=2) + "\n").encode()
    yield from _data(root)


def _below(directory: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for entry in sorted(directory.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir() and entry.name != "__pycache__":
            yield from _below(entry, f"{prefix}{entry.name}/")
        elif entry.is_file() and entry.name != DIGITS:
            yield prefix + _RENAMED.get(entry.name, entry.name), entry


def _data(root: Traversable) -> Iterator[tuple[str, bytes]]:
    """Digits as PNG files, with a table of their labels in each part."""
    import numpy as np

    with np.load(io.BytesIO((root / DIGITS).read_bytes()), allow_pickle=False) as stored:
        images, labels = stored["images"], stored["labels"]
    start = 0
    for part, count in PARTS.items():
        rows = [("image", "label")]
        for number in range(start, start + count):
            name = f"digit_{number:04}.png"
            rows.append((name, str(labels[number])))
            yield f"data/{part}/{name}", _png(_enlarged(images[number]))
        table = io.StringIO()
        csv.writer(table, lineterminator="\n").writerows(rows)
        yield f"data/{part}/labels.csv", table.getvalue().encode()
        start += count


def _enlarged(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Eight by eight pixels of 17 grades, drawn larger and with a margin, as 28 by 28 of 256."""
    import numpy as np

    places = np.linspace(0, len(image) - 1, _SIDE)
    weights = np.maximum(0, 1 - abs(places[:, None] - np.arange(len(image))))
    grades = weights @ image @ weights.T
    return np.pad((grades * (255 / 16)).round().astype(np.uint8), _MARGIN)


def _png(pixels: NDArray[np.uint8]) -> bytes:
    """A grey PNG file: three chunks, each with its length and checksum."""
    height, width = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = b"".join(
        b"\0" + row.tobytes() for row in pixels
    )  # each row begins with its filter: none
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + body
