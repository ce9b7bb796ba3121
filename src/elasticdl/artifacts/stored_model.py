"""A trained model that was found somewhere: what it says of itself, and its files, each one checked."""

from __future__ import annotations

import atexit
import json
import math
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from upath import UPath

from elasticdl.artifacts.message import FORMAT_VERSION, TrainedModel, decode
from elasticdl.artifacts.tensors import checksum
from elasticdl.artifacts.trained_model import (
    KERAS,
    MESSAGE,
    PARAMETERS,
    ZOO,
)
from elasticdl.errors import CorruptData, InvalidValue, NotFound
from elasticdl.storage import is_local, place, storage_errors

__all__ = [
    "StoredModel",
    "fetch_bare",
    "find_trained_model",
    "is_bare",
    "load_parameters",
    "remove_downloads",
]

_MAX_HEADER = 100_000_000
_AGAIN = "Copy the trained model again, or train it anew."


@dataclass(frozen=True)
class StoredModel:
    """The directory of a trained model and its message."""

    directory: UPath
    message: TrainedModel

    @property
    def job(self) -> dict[str, Any]:
        """The options that rebuild the model."""
        return self._json("job")

    @property
    def signature(self) -> dict[str, Any]:
        """Its inputs and outputs by name."""
        return self._json("signature")

    def _json(self, name: str) -> dict[str, Any]:
        try:
            value = json.loads(getattr(self.message, name) or "{}")
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise CorruptData(f"The {name} in {self.directory / MESSAGE} is damaged. {_AGAIN}")
        return value

    @property
    def missing(self) -> list[str]:
        """The files that the message tells of and that are not there."""
        with storage_errors(self.directory, doing="read"):
            return [name for name in self._names("") if not self._path(name).is_file()]

    @property
    def num_parameters(self) -> int:
        """How many numbers the model was trained to, random states among them; 0 when unknown."""
        file = self._path(self._parameters)
        with storage_errors(self.directory, doing="read"):
            if not file.is_file():
                return 0
            with file.open("rb") as opened:
                size = int.from_bytes(opened.read(8), "little")
                header = opened.read(min(size, _MAX_HEADER))
        try:
            tensors = json.loads(header)
        except ValueError:
            return 0
        return sum(math.prod(t["shape"]) for n, t in tensors.items() if n != "__metadata__")

    @property
    def _parameters(self) -> str:
        return parameters_of(self.message, self.directory)

    def fetch(self, *wanted: str) -> Path:
        """A local directory with these files or directories, each file as it was written.

        A model that is local stays where it is. From afar, only what is wanted is downloaded, to a
        directory that is removed when the process ends.
        """
        list(self._names(""))  # none of them leads out
        named = [self._parameters if one == PARAMETERS else one for one in wanted]
        names = [name for one in named for name in self._names(one)]
        here = Path(str(self.directory)) if is_local(self.directory) else self._download(names)
        for name in names:
            self._check(here, name)
        if ZOO in wanted:
            self._check_nothing_added(here)
        return here

    def _names(self, wanted: str) -> Iterator[str]:
        for name in self.message.files:
            if ".." in PurePosixPath(name).parts or PurePosixPath(name).is_absolute():
                raise CorruptData(f"{self.directory / MESSAGE} names a file outside of it: {name}.")
            if not wanted or name == wanted or name.startswith(f"{wanted}/"):
                yield name

    def _path(self, name: str) -> UPath:
        return self.directory.joinpath(*PurePosixPath(name).parts)

    def _download(self, names: list[str]) -> Path:
        here = _temporary()
        with storage_errors(self.directory, doing="read"):
            for name in [MESSAGE, *names]:
                (here / name).parent.mkdir(parents=True, exist_ok=True)
                path = self._path(name)
                if path.is_file():
                    path.fs.get_file(path.path, str(here / name))
        return here

    def _check(self, here: Path, name: str) -> None:
        if not (here / name).is_file():
            raise CorruptData(
                f"The trained model {self.directory} is not whole: {name} is missing. {_AGAIN}"
            )
        with storage_errors(self.directory, doing="read"):
            found = checksum(here / name)
        if found != self.message.files[name]:
            raise CorruptData(
                f"The trained model {self.directory} is damaged: {name} is not what was written, its "
                f"checksum does not fit. {_AGAIN}"
            )

    def _check_nothing_added(self, here: Path) -> None:
        """A file more could stand in for a module that the model's code imports."""
        for path in sorted((here / ZOO).rglob("*.py")):
            name = path.relative_to(here).as_posix()
            if name not in self.message.files:
                raise CorruptData(
                    f"The trained model {self.directory} was altered: {name} does not belong to it. "
                    "Remove it."
                )


def parameters_of(message: TrainedModel, directory: UPath | Path) -> str:
    """The file of the parameters: one of those that the message vouches for."""
    name = message.params_filename or PARAMETERS
    if name not in message.files:
        raise CorruptData(
            f"{directory / MESSAGE} says that the parameters are in {name}, which is none of the trained "
            f"model's files. {_AGAIN}"
        )
    return name


def find_trained_model(path: str) -> StoredModel:
    """The trained model, given its directory, the run directory, or a file inside of it."""
    where = place(path)
    with storage_errors(where, doing="read"):
        for candidate in (where / "model", where, where.parent):
            if (candidate / MESSAGE).is_file():
                return StoredModel(candidate, _read(candidate / MESSAGE))
        there = where.exists()
        parts = [
            n
            for n in (PARAMETERS, KERAS)
            if any((c / n).exists() for c in (where / "model", where))
        ]
        is_file = where.is_file()
    what = f"holds no {MESSAGE}" if there else "does not exist"
    if is_file:
        what = "is a file, and no Keras file (.keras)"
    if parts:
        what = f"holds {' and '.join(parts)}, but no {MESSAGE}, which says what they are"
    raise NotFound(
        f"There is no trained model in {path}: it {what}. "
        "Give the --output of a training that was completed."
    )


def _read(file: UPath) -> TrainedModel:
    message = decode(file.read_bytes(), str(file))
    if message.format_version < 1:
        raise CorruptData(f"{file} is not the message of a trained model. {_AGAIN}")
    if message.format_version > FORMAT_VERSION:
        raise InvalidValue(
            f"The trained model {file.parent} was written by ElasticDL {message.elasticdl_version}, in "
            f"version {message.format_version} of its format; this one reads up to {FORMAT_VERSION}. "
            "Update it: pip install -U elasticdl"
        )
    return message


def is_bare(path: str) -> bool:
    """Whether this is a Keras file or a SavedModel that no trained model of ours is around."""
    where = place(path)
    with storage_errors(where, doing="read"):
        if any((c / MESSAGE).is_file() for c in (where / "model", where, where.parent)):
            return False
        if where.name.endswith(".keras"):
            return where.is_file()
        return (where / "saved_model.pb").is_file()


def fetch_bare(path: str) -> Path:
    """A bare model as a local file or directory; from afar, downloaded until the process ends."""
    where = place(path)
    if is_local(where):
        return Path(str(where))
    here = _temporary() / where.name
    with storage_errors(where, doing="read"):
        where.fs.get(where.path, str(here), recursive=where.is_dir())
    return here


def _temporary() -> Path:
    here = Path(tempfile.mkdtemp(prefix="elasticdl-model-"))
    _downloads.append(here)
    return here


_downloads: list[Path] = []


@atexit.register
def remove_downloads() -> None:
    """Who ends without Python's own end has to say so."""
    while _downloads:
        shutil.rmtree(_downloads.pop(), ignore_errors=True)


def load_parameters(directory: Path) -> dict[str, Any]:
    """The parameters of a trained model, by name."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    file = directory / parameters_of(_read(place(directory / MESSAGE)), directory)
    try:
        return dict(load_file(file))
    except (SafetensorError, OSError) as error:
        raise CorruptData(f"The trained model {file} cannot be read: {error}.") from error
