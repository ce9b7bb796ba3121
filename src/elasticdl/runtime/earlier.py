"""What an earlier run says of a job: a run that is resumed, a model that is evaluated."""

from __future__ import annotations

import contextlib
import json
import random
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from upath import UPath

from elasticdl.artifacts.checkpoint import Checkpoints
from elasticdl.artifacts.run_directory import RunDirectory
from elasticdl.artifacts.stored_model import (
    StoredModel,
    fetch_bare,
    find_trained_model,
    is_bare,
)
from elasticdl.artifacts.trained_model import KERAS, PARAMETERS, SAVED_MODELS, ZOO
from elasticdl.contract.git_zoo import as_begun, fetch_zoo
from elasticdl.contract.requirements import check_requirements
from elasticdl.engine.trainer import Emit, Trainer
from elasticdl.errors import DataError, ElasticDLError, InvalidValue, NotFound
from elasticdl.job.config import JobConfig
from elasticdl.job.parse import parse_params
from elasticdl.runtime.predict_job import open_output
from elasticdl.storage import children

__all__ = ["as_trained", "complete", "restore", "strategy", "with_zoo"]

_FIXED = ("seed", "minibatch_size", "global_batch_size", "num_minibatches_per_task")
"""The options that decide what a step is: a run cannot go on with others."""

_FOR_ONCE = ("max_step", "overwrite", "ray_address")
"""The options that were meant for the first time only: who resumes wants to go on."""

_OF_THE_MODEL = (
    "model_def",
    "model_params",
    "dataset_fn",
    "loss",
    "eval_metrics_fn",
    "custom_data_reader",
    "prediction_outputs_processor",
    "feature_plan",
    "data_reader_params",
)
"""The options that say what a model is and how it reads its records."""


def complete(config: JobConfig, directory: RunDirectory) -> JobConfig:
    """The config with a seed and the zoo's lasting name; of a resumed run, with what it began with."""
    if config.resume:
        config = _resumed(config, _read(directory.job))
    config = with_zoo(config)
    if config.seed is None:
        config = replace(config, seed=random.SystemRandom().getrandbits(31))
    return config


def with_zoo(config: JobConfig) -> JobConfig:
    """The zoo is here and what it requires too, said before TensorFlow takes its seconds to load.

    The config names it by its whole path, or by its address at a commit and without credentials.
    """
    if config.model_def is None and config.model_zoo is None:
        return config
    quiet = config.log_level in ("WARNING", "ERROR")
    zoo = fetch_zoo(config.model_zoo, None if quiet else lambda line: print(line, file=sys.stderr))
    if config.model_def is not None:
        check_requirements(zoo.directory)
    return replace(config, model_zoo=zoo.name)


def _resumed(config: JobConfig, began: dict[str, Any]) -> JobConfig:
    start = JobConfig.from_json(_without(began, _FOR_ONCE))
    given = {name: getattr(config, name) for name in config.given}
    for name in _FIXED:
        if name in given and given[name] != getattr(start, name):
            raise InvalidValue(
                f"The run was started with {name}={getattr(start, name)} and cannot go on with "
                f"{given[name]}. Leave --{name} out."
            )
    if "model_zoo" in given:
        given["model_zoo"] = as_begun(given["model_zoo"], start.model_zoo)
    return replace(start, **given, given=config.given)


def strategy(config: JobConfig) -> str:
    """How the run, or the prediction, that is resumed was begun; Local where nobody knows."""
    if config.command == "predict":
        output = open_output(config)
        began: dict[str, Any] = {}
        with contextlib.suppress(ElasticDLError):  # there is none, which is said later
            began = {} if output is None else output.files.read().get("options", {})
    else:
        job = RunDirectory(str(config.output)).job
        began = _read(job) if job.exists() else {}
    return str(began.get("distribution_strategy", "Local"))


def _without(values: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def as_trained(config: JobConfig, objects: Mapping[str, Any]) -> JobConfig:
    """What was not said anew about the model is as it was in its training.

    The trained model alone is read, not the run around it. From then on `trained_model` is a local
    directory, whose files were checked, or a bare Keras file or SavedModel.
    """
    if not config.trained_model:
        return config
    if is_bare(config.trained_model):
        return replace(config, trained_model=str(fetch_bare(config.trained_model)))
    stored = find_trained_model(config.trained_model)
    if config.model_def or "model" in objects:
        return replace(config, trained_model=str(stored.fetch(PARAMETERS)))
    job = stored.job
    _refuse_lost_objects(stored, config, objects)
    wanted = [PARAMETERS, ZOO] if job.get("model_def") else [KERAS, *SAVED_MODELS, ZOO]
    here = stored.fetch(*wanted)
    kept = {name: job[name] for name in _OF_THE_MODEL if name in job and name not in objects}
    kept = {name: value for name, value in kept.items() if not getattr(config, name)}
    for name in ("model_params", "data_reader_params"):
        if name in kept:
            kept[name] = parse_params(name, kept[name])
    if not job.get("model_def"):
        kept.pop("model_params", None)  # they are built into the Keras file
    if config.model_zoo is None and (here / ZOO).is_dir():
        kept["model_zoo"] = str(here / ZOO)
    return replace(config, **kept, trained_model=str(here))


def _refuse_lost_objects(
    stored: StoredModel, config: JobConfig, objects: Mapping[str, Any]
) -> None:
    """Python objects cannot be written down: those that decide what the features are must be given again."""
    job = stored.job
    lost = {name for name in ("dataset_fn", "custom_data_reader") if name in job.get("objects", ())}
    if stored.message.input_function and not job.get("model_def") and not job.get("dataset_fn"):
        lost.add("dataset_fn")  # it was a part of the model's object
    for name in sorted(lost):
        if name not in objects and not getattr(config, name):
            raise InvalidValue(
                f"The model was trained with a {name} that was given as a Python object, which is not in the "
                f"trained model. Give it again in Python: elasticdl.{config.command}(..., {name}=...)."
            )


def restore(
    trainer: Trainer, store: Checkpoints, directory: RunDirectory, config: JobConfig, emit: Emit
) -> None:
    """Go on from the newest checkpoint that is whole; a run that was stopped before one, from its start."""
    checkpoint, faults = store.latest()
    for fault in faults:
        emit("warning", message=fault)
    if checkpoint is None:
        known = "none of its checkpoints is whole" if faults else "it saved no checkpoint"
        if children(directory.model):
            raise NotFound(
                f"The run cannot be resumed: it has ended and {known}. Start anew with --overwrite, and "
                "save some with --checkpoint_steps=N."
            )
        emit("warning", message=f"The run starts from its beginning: {known}.")
        return
    if checkpoint.state["seed"] != config.seed:
        raise InvalidValue(
            f"The checkpoint {checkpoint.path} is of another run: its seed is {checkpoint.state['seed']}, "
            f"that of {directory.path} is {config.seed}. Give the seed that it began with, or the "
            "--checkpoint_dir of this run."
        )
    num_epochs = config.num_epochs
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


def _read(path: UPath) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except ValueError as error:
        raise DataError(f"Cannot read {path}: {error}. It was altered; start anew.") from error
