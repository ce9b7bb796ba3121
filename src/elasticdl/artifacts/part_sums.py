"""What each part of a prediction was when it was written: `.part-00000.json` beside it, its size and SHA-256.

It is written before the part gets its name, and not synced: one that is lost or torn costs a part that is made again.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from upath import UPath

from elasticdl.artifacts.tensors import checksum
from elasticdl.storage import is_local

__all__ = ["Sum", "alone", "fault_of", "read_sums", "sum_of", "write_sum"]


@dataclass(frozen=True)
class Sum:
    """The size of a part in bytes, and the SHA-256 of them."""

    size: int
    sha256: str


def sum_of(file: Path) -> Sum:
    return Sum(file.stat().st_size, checksum(file))


@contextmanager
def alone(parts: UPath, number: int) -> Iterator[Sum | None]:
    """Nobody else puts this part in its place meanwhile. Gives what is known of one that may be there.

    From afar nothing can be held, and nothing is asked: the same rows are the same bytes, whoever writes them.
    """
    if not is_local(parts):
        yield None
        return
    with Path(str(_file(parts, number))).open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        yield _parsed(file.read())


def write_sum(parts: UPath, number: int, value: Sum) -> None:
    file = _file(parts, number)
    data = json.dumps(asdict(value)).encode()
    if is_local(parts):
        file.write_bytes(data)
    else:
        file.fs.pipe_file(file.path, data)


def read_sums(parts: UPath, numbers: Iterable[int]) -> dict[int, Sum]:
    """Those that are there and can be read; from afar, several at a time."""
    files = {number: _file(parts, number) for number in numbers}
    if is_local(parts):
        found = {n: file.read_bytes() for n, file in files.items() if file.is_file()}
    elif files:
        by_path = parts.fs.cat([file.path for file in files.values()], on_error="omit")
        found = {n: by_path[file.path] for n, file in files.items() if file.path in by_path}
    else:
        found = {}
    read = {number: _parsed(data) for number, data in found.items()}
    return {number: value for number, value in read.items() if value is not None}


def fault_of(part: UPath, written: Sum | None, *, thoroughly: bool) -> str | None:
    """What is wrong with a part; None when it is what was written.

    Args:
      thoroughly: look at its bytes. From afar they are not fetched for it: an object store puts a part whole,
        and keeps checksums of its own.
    """
    if written is None:
        return "it is not known what was written there"
    if (size := part.stat().st_size) != written.size:
        return f"it has {size:,} bytes, and {written.size:,} were written"
    if thoroughly and is_local(part) and checksum(Path(str(part))) != written.sha256:
        return "its checksum does not fit"
    return None


def _file(parts: UPath, number: int) -> UPath:
    return parts / f".part-{number:05}.json"


def _parsed(data: bytes) -> Sum | None:
    try:
        value = json.loads(data)
        return Sum(int(value["size"]), str(value["sha256"]))
    except (ValueError, KeyError, TypeError):
        return None
