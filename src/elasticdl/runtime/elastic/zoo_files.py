"""The files of a model zoo as the workers get them: all see the same, also who joins after an edit.

A zoo may lie beside gigabytes of data, and is the working directory when nothing else is said. What is
taken is what could be a part of a model: source files and small files beside them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from elasticdl.artifacts.message import IMAGE_VARIABLE
from elasticdl.contract.git_zoo import fetch_zoo
from elasticdl.contract.snapshot import MAX_DATA_BYTES
from elasticdl.errors import InvalidValue
from elasticdl.storage import storage_errors

__all__ = [
    "ZooFiles",
    "sort_zoo_files",
    "zoo_environment",
    "zoo_files",
    "zoo_to_send",
]

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
    "*.ppk",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "*credential*",
    "*secret*",
    "*password*",
    "*passwd*",
    "*.env",
    "*.env.*",
    "*token",
    "*token.*",
    "*api_key*",
    "*api-key*",
    "*apikey*",
    "*netrc",
    "*.keystore",
    "*kubeconfig*",
    "*service-account*",
    "*service_account*",
)
"""Names of files that no worker needs and nobody wants on another machine; source files may be called so.

A token is one at the end of a name: models need their `tokenizer.json` and `tokens.txt`.
"""

PRIVATE_KEY = b"PRIVATE KEY-----"
"""A file with this in it is a secret whatever its name: a key, or the JSON file of a cloud's account."""

UNMISSED = (".gitignore", ".gitkeep", ".gitattributes", ".dockerignore", ".DS_Store")


def zoo_to_send(zoo: str | None) -> Path | None:
    """The directory of a zoo that workers must be given; None where they have it: all pods have one image."""
    directory = Path(fetch_zoo(zoo).directory)
    is_of_image = IMAGE_VARIABLE in os.environ and zoo is not None and directory == Path(zoo)
    return None if is_of_image else directory


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


@dataclass(frozen=True)
class ZooFiles:
    """Names relative to the zoo, sorted."""

    taken: list[str]
    left_out: list[str]
    """What somebody could miss: large files, what is named like a secret, links that lead out."""
    asked: list[str]
    """Those of `taken` that a pattern named."""


def zoo_files(zoo: Path) -> list[str]:
    """The names, relative to the zoo, of the files that workers get, sorted.

    Raises:
      InvalidValue: that is too much to be a zoo.
    """
    return sort_zoo_files(zoo).taken


def sort_zoo_files(zoo: Path, include: Sequence[str] = ()) -> ZooFiles:
    """Which files of a zoo travel and which stay.

    Nothing hidden, no caches, environments or runs; nothing large, nothing that is named like a secret;
    nothing outside of the zoo that a link leads to. What a pattern of `include` names travels all the
    same: `*.bin` by its name, `words/*.txt` by its path, `words` with all that is below.

    Raises:
      InvalidValue: that is too much to be a zoo.
    """
    root = zoo.resolve()
    wanted: list[Path] = []
    taken: list[Path] = []
    left_out: list[Path] = []
    total = 0
    for directory, is_code, names in _directories(root, include):
        paths = [path for name in names if (path := directory / name).is_file()]
        asked = [path for path in paths if _is_asked(root, path, include)]
        wanted += asked
        if not is_code:
            continue
        paths = [path for path in paths if path not in asked]
        here = [path for path in paths if _is_taken(root, path)]
        if len(here) > MAX_FILES_OF_A_DIRECTORY:
            here = [path for path in here if path.suffix == ".py"]
        total += sum(path.stat().st_size for path in here)
        if total > MAX_BYTES:
            raise InvalidValue(
                f"The model zoo {zoo} has more than {MAX_BYTES >> 20} MB of source and small files, too much to be "
                "sent to workers. Give --model_zoo a directory with model files only."
            )
        taken += here
        left_out += [p for p in paths if p not in here and p.name not in UNMISSED]
    return ZooFiles(_names(root, [*taken, *wanted]), _names(root, left_out), _names(root, wanted))


def _names(root: Path, paths: Iterable[Path]) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in paths)


def _is_asked(root: Path, path: Path, include: Sequence[str]) -> bool:
    name = path.relative_to(root).as_posix()
    return any(
        fnmatch(name, pattern)
        or fnmatch(name, f"{pattern.rstrip('/')}/*")
        or ("/" not in pattern and fnmatch(path.name, pattern))
        for pattern in include
    )


def _directories(root: Path, include: Sequence[str]) -> Iterator[tuple[Path, bool, list[str]]]:
    """Every directory that is looked at, whether it may hold code, and the names in it.

    Others are entered only when a pattern names them: `*.json` does not mean those of an environment.
    """
    other: set[Path] = set()
    for name, below, names in os.walk(root):
        directory = Path(name)
        entered = []
        for child in (directory / name for name in sorted(below)):
            is_code = directory not in other and _is_code(child)
            if not is_code:
                other.add(child)
            if is_code or _is_named(child.relative_to(root).as_posix(), include):
                entered.append(child.name)
        below[:] = entered
        yield directory, directory not in other, sorted(names)


def _is_named(directory: str, include: Sequence[str]) -> bool:
    """By a pattern that leads to it, or from it on."""
    patterns = [f"{pattern.rstrip('/')}/" for pattern in include]
    return any(p.startswith(f"{directory}/") or f"{directory}/".startswith(p) for p in patterns)


def _is_code(directory: Path) -> bool:
    hidden = directory.name.startswith(".") or directory.name in NOT_CODE
    is_run = (directory / "job.json").exists() and (directory / "events.jsonl").exists()
    return not (hidden or is_run or (directory / "pyvenv.cfg").exists())


def _is_taken(root: Path, path: Path) -> bool:
    if path.name.startswith("."):
        return False
    if path.suffix == ".py":
        return path.resolve().is_relative_to(root)
    is_secret = any(fnmatch(path.name.lower(), pattern) for pattern in SECRETS)
    is_small = path.stat().st_size <= MAX_DATA_BYTES
    if is_secret or not is_small or not path.resolve().is_relative_to(root):
        return False
    return PRIVATE_KEY not in path.read_bytes()
