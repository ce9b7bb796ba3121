"""What an earlier run says of a job: a run that is resumed, a model that is evaluated."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from elasticdl.artifacts.checkpoint import Checkpoints
from elasticdl.artifacts.run_directory import RunDirectory
from elasticdl.artifacts.trained_model import find_trained_model
from elasticdl.engine.trainer import Emit, Trainer
from elasticdl.errors import DataError, InvalidValue, NotFound
from elasticdl.job.config import JobConfig

__all__ = ["as_trained", "complete", "restore"]

_FIXED = ("seed", "minibatch_size", "num_minibatches_per_task")
"""The options that decide what a step is: a run cannot go on with others."""

_FOR_ONCE = ("max_step", "overwrite")
"""The options that were meant for the first time only: who resumes wants to go on."""

_OF_THE_MODEL = (
    "model_zoo",
    "model_def",
    "model_params",
    "dataset_fn",
    "loss",
    "eval_metrics_fn",
    "custom_data_reader",
    "data_reader_params",
)
"""The options that say what a model is and how it reads its records."""


def complete(config: JobConfig, directory: RunDirectory) -> JobConfig:
    """The config with a seed and the zoo's whole path; of a resumed run, with what it began with."""
    if config.resume:
        config = _resumed(config, _read(directory.job))
    if config.model_def is not None:
        config = replace(config, model_zoo=os.path.abspath(config.model_zoo or "."))
    if config.seed is None:
        config = replace(config, seed=random.SystemRandom().getrandbits(31))
    return config


def _resumed(config: JobConfig, began: dict[str, Any]) -> JobConfig:
    start = JobConfig.from_json(_without(began, _FOR_ONCE))
    given = {name: getattr(config, name) for name in config.given}
    for name in _FIXED:
        if name in given and given[name] != getattr(start, name):
            raise InvalidValue(
                f"The run was started with {name}={getattr(start, name)} and cannot go on with "
                f"{given[name]}. Leave --{name} out."
            )
    return replace(start, **given, given=config.given)


def _without(values: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def as_trained(config: JobConfig, objects: Mapping[str, Any]) -> JobConfig:
    """What was not said anew about the model is as it was in its training."""
    if not config.trained_model:
        return config
    run = find_trained_model(Path(config.trained_model)).parent
    if config.model_def or "model" in objects or not RunDirectory(run).job.exists():
        return config
    began = _read(RunDirectory(run).job)
    kept = {name: began[name] for name in _OF_THE_MODEL if name in began}
    return replace(config, **{n: v for n, v in kept.items() if not getattr(config, n)})


def restore(trainer: Trainer, store: Checkpoints, num_epochs: int, emit: Emit) -> None:
    """Go on from the newest checkpoint that is whole."""
    checkpoint, faults = store.latest()
    for fault in faults:
        emit("warning", message=fault)
    if checkpoint is None:
        known = "none of its checkpoints is whole" if faults else "it saved no checkpoint"
        raise NotFound(
            f"The run cannot be resumed: {known}. Start anew with --overwrite, and save some with "
            "--checkpoint_steps=N."
        )
    ledger = checkpoint.state["ledger"]
    epoch, begun = ledger["epoch"], bool(ledger["applied"] or ledger["started"])
    if epoch + begun > num_epochs:
        raise InvalidValue(
            f"The run has done {epoch} epochs{' and begun another' if begun else ''}: "
            f"--num_epochs={num_epochs} would cut it off."
        )
    try:
        trainer.restore(checkpoint.tensors, checkpoint.state)
    except DataError:
        raise
    except ValueError as error:
        raise InvalidValue(
            f"The checkpoint {checkpoint.path} is of another job: {error}. "
            "Resume with the data that it was started with."
        ) from error


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except ValueError as error:
        raise DataError(f"Cannot read {path}: {error}. It was altered; start anew.") from error
