"""What a prediction is: its output by name, and the facts by which its parts are known."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from upath import UPath

from elasticdl.artifacts.predictions import Predictions
from elasticdl.contract.git_zoo import as_begun
from elasticdl.data.source import ArraySpec, Shard
from elasticdl.data.writers.formats import FORMATS, WriterFormat, by_suffix
from elasticdl.engine.state import TrainingModel
from elasticdl.errors import InvalidValue, UnknownName, nearest
from elasticdl.job.config import JobConfig
from elasticdl.storage import place, storage_errors

__all__ = ["Output", "fingerprint", "open_output", "resumed"]

_DEFAULT = "parquet"
_FOR_ONCE = ("overwrite", "resume", "ray_address")


@dataclass(frozen=True)
class Output:
    """A place for predictions, and the format of its files."""

    place: UPath
    format: WriterFormat
    files: Predictions

    def check(self, *, resume: bool, overwrite: bool) -> None:
        if resume and overwrite:
            raise InvalidValue("--resume and --overwrite contradict each other. Give one of them.")
        self.files.check(resume=resume, overwrite=overwrite)


def open_output(config: JobConfig) -> Output | None:
    """The output that a job names: a file by its suffix, or a directory."""
    if not config.output:
        if config.resume:
            raise InvalidValue("Name the prediction to resume with --output=...")
        return None
    where = place(config.output.rstrip("/") or config.output)
    with storage_errors(where, doing="look into"):
        is_directory = config.output.endswith("/") or where.is_dir()
    known = by_suffix(where.suffix)
    if where.suffix and known is None and not is_directory:
        raise _unknown(config.output, where.suffix)
    said = config.output_format
    if known and said and known.name != said and not is_directory:
        raise InvalidValue(
            f"The output {config.output} is a {known.name} file by its name, and output_format is "
            f"{said!r}. Leave --output_format out, or name a directory."
        )
    format_ = FORMATS[said] if said else known or FORMATS[_DEFAULT]
    is_file = known is not None and not is_directory
    return Output(where, format_, Predictions(where, format_, is_file=is_file))


def _unknown(output: str, suffix: str) -> UnknownName:
    suffixes = [s for format_ in FORMATS.values() for s in format_.suffixes]
    return UnknownName(
        f"Unknown suffix {suffix!r} of the output {output}. {nearest(suffix, suffixes)} "
        f"For a directory of that name, give {output}/"
    )


def resumed(config: JobConfig, output: Output) -> JobConfig:
    """With the options that the prediction was begun with, where none are given anew."""
    if not config.resume:
        return config
    options = output.files.read().get("options", {})
    began = {name: value for name, value in options.items() if name not in _FOR_ONCE}
    given = {name: getattr(config, name) for name in config.given}
    if "model_zoo" in given:
        given["model_zoo"] = as_begun(given["model_zoo"], began.get("model_zoo"))
    return replace(JobConfig.from_json(began), **given, given=config.given)


def fingerprint(
    config: JobConfig,
    shards: Sequence[Shard],
    files: str,
    training: TrainingModel,
    schema: Mapping[str, ArraySpec],
    format_: WriterFormat,
) -> dict[str, Any]:
    """What must be the same for parts to belong together.

    Args:
      files: the stamp of the data's files.
    """
    records = sum(shard.num_records for shard in shards)
    names = "\n".join(f"{shard.name}\t{shard.num_records}" for shard in shards)
    return {
        "data": f"{_counted(records, 'record')} in {_counted(len(shards), 'shard')}, {shards[0].name} the "
        f"first ({_digest(names.encode())})",
        "data's content": files,
        "model": _digest(*_bytes_of(training)),
        "minibatch_size": config.minibatch_size,
        "num_minibatches_per_task": config.num_minibatches_per_task,
        "format": format_.name,
        "outputs": {name: f"{spec.dtype} {list(spec.shape)}" for name, spec in schema.items()},
    }


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _bytes_of(training: TrainingModel) -> list[bytes]:
    pieces: list[bytes] = []
    for name, value in training.variables.items():
        array = value.numpy()
        pieces += [f"{name} {array.dtype} {array.shape}".encode(), array.tobytes()]
    return pieces


def _digest(*pieces: bytes) -> str:
    made = hashlib.sha256()
    for piece in pieces:
        made.update(piece)
    return made.hexdigest()[:16]
