"""The files of a model zoo as the workers get them: all see the same, also who joins after an edit.

A zoo may lie beside gigabytes of data, and is the working directory when nothing else is said. What is
taken is what could be a part of a model: source files and small files beside them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from elasticdl.contract.snapshot import MAX_DATA_BYTES
from elasticdl.errors import InvalidValue
from elasticdl.storage import storage_errors

__all__ = ["zoo_environment", "zoo_files"]

VARIABLES = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "GRPC_VERBOSITY": "NONE",
    "KERAS_BACKEND": "tensorflow",
}
MAX_FILES_OF_A_DIRECTORY = 100
"""A directory with more small files than that holds data: pictures, shards."""

MAX_BYTES = 100 << 20
NOT_CODE = ("__pycache__", "node_modules", "elasticdl_runs", "mlruns", "site-packages")
SECRETS = (
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "id_rsa*",
    "id_ed25519*",
    "*credential*",
    "*secret*",
)
"""Names of files that no worker needs and nobody wants on another machine; source files may be called so."""


@contextmanager
def zoo_environment(zoo: Path | None) -> Iterator[dict[str, Any]]:
    """Ray's runtime environment for workers: they start in a directory with the zoo's files.

    The files are copied when it is entered and may go when Ray has them: `ray_cluster` hands them over
    when it starts, and an actor that is given them when it is made.
    """
    if zoo is None:
        yield {"env_vars": dict(VARIABLES)}
        return
    with tempfile.TemporaryDirectory(prefix="elasticdl-zoo-") as copy:
        with storage_errors(copy):
            for name in zoo_files(zoo):
                target = Path(copy, name)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(zoo / name, target)
        yield {"working_dir": copy, "env_vars": dict(VARIABLES)}


def zoo_files(zoo: Path) -> list[str]:
    """The names, relative to the zoo, of the files that workers get, sorted.

    Nothing hidden, no caches, environments or runs; nothing large, nothing that is named like a secret;
    nothing outside of the zoo that a link leads to.

    Raises:
      InvalidValue: that is too much to be a zoo.
    """
    found: list[str] = []
    total = 0
    root = zoo.resolve()
    for directory, below, names in os.walk(root):
        below[:] = [name for name in sorted(below) if _is_visited(Path(directory, name))]
        taken = [path for name in sorted(names) if _is_taken(root, path := Path(directory, name))]
        if len(taken) > MAX_FILES_OF_A_DIRECTORY:
            taken = [path for path in taken if path.suffix == ".py"]
        total += sum(path.stat().st_size for path in taken)
        if total > MAX_BYTES:
            raise InvalidValue(
                f"The model zoo {zoo} has more than {MAX_BYTES >> 20} MB of source and small files, too much to be "
                "sent to workers. Give --model_zoo a directory with model files only."
            )
        found += [path.relative_to(root).as_posix() for path in taken]
    return sorted(found)


def _is_visited(directory: Path) -> bool:
    hidden = directory.name.startswith(".") or directory.name in NOT_CODE
    is_run = (directory / "job.json").exists() and (directory / "events.jsonl").exists()
    return not (hidden or is_run or (directory / "pyvenv.cfg").exists())


def _is_taken(root: Path, path: Path) -> bool:
    if path.name.startswith(".") or not path.is_file():
        return False
    if path.suffix == ".py":
        return path.resolve().is_relative_to(root)
    is_secret = any(fnmatch(path.name.lower(), pattern) for pattern in SECRETS)
    is_small = path.stat().st_size <= MAX_DATA_BYTES
    return is_small and not is_secret and path.resolve().is_relative_to(root)
