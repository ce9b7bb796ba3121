"""What a prediction reads: its files by name, and that the output is none of them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from upath import UPath

from elasticdl.artifacts.predictions import Predictions
from elasticdl.artifacts.stored_model import find_trained_model, is_bare
from elasticdl.data.files import File
from elasticdl.data.paths import absolute, expand
from elasticdl.errors import ElasticDLError, InvalidValue
from elasticdl.job.config import JobConfig
from elasticdl.storage import is_local, place

__all__ = ["data_files", "from_anywhere", "refuse_inputs"]


def data_files(config: JobConfig, objects: Mapping[str, Any]) -> list[File]:
    """The files that the data's name leads to; none for arrays, and for what only the user's reader knows."""
    files: list[File] = []
    for name in _names(config, objects):
        with contextlib.suppress(ElasticDLError):  # who opens the data tells what is wrong
            files += expand(name)
    return files


def _names(config: JobConfig, objects: Mapping[str, Any]) -> list[str]:
    data = objects.get("prediction_data", config.prediction_data)
    several = data if isinstance(data, list) else [data]
    return [os.fspath(one) for one in several if isinstance(one, str | os.PathLike)]


def refuse_inputs(
    config: JobConfig, objects: Mapping[str, Any], output: Predictions, files: Sequence[File]
) -> None:
    """An output may not take the place of what the prediction reads."""
    written = [_known_as(output.output), _known_as(output.parts)]
    for name in [file.url for file in files] + _names(config, objects):
        for read in _identities(name):
            if any(_is_inside(read, one) for one in written):
                raise InvalidValue(
                    f"The output {output.output} would take the place of the data {name}. Give another "
                    "--output."
                )
    if config.trained_model:
        model = _known_as(_model_place(config.trained_model))
        if _is_inside(written[0], model):
            raise InvalidValue(
                f"The output {output.output} is inside of the trained model {config.trained_model}. Give "
                "another --output."
            )


def _identities(name: str) -> Iterator[str]:
    with contextlib.suppress(ElasticDLError):  # an address that only the user's reader knows
        yield _known_as(place(name))


def _model_place(path: str) -> UPath:
    return place(path) if is_bare(path) else find_trained_model(path).directory


def _known_as(where: UPath) -> str:
    """One name for one place: without links here, as the file system calls it elsewhere."""
    if is_local(where):
        return str(Path(str(where)).resolve())
    return str(where.fs.unstrip_protocol(where.path.rstrip("/")))


def _is_inside(one: str, other: str) -> bool:
    return one == other or one.startswith(f"{other.rstrip('/')}/")


def from_anywhere(config: JobConfig, *, own_reader: bool) -> JobConfig:
    """The job with local paths that mean the same from any working directory.

    Args:
      own_reader: the data is named for the user's reader, which knows what the name means.
    """
    data, model = config.prediction_data, config.trained_model
    return replace(
        config,
        prediction_data=absolute(data) if data and not own_reader else data,
        trained_model=_whole(model) if model else model,
        output=_whole(config.output) if config.output else config.output,
    )


def _whole(path: str) -> str:
    where = place(path)
    slash = "/" if path.endswith("/") else ""
    return f"{Path(str(where)).absolute()}{slash}" if is_local(where) else path
