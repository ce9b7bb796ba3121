"""What to try after a training: commands that work as they are printed."""

from __future__ import annotations

import shlex

from elasticdl.artifacts.run_directory import RunDirectory
from elasticdl.job.config import JobConfig

__all__ = ["next_steps"]

Steps = tuple[tuple[str, str], ...]


def next_steps(config: JobConfig, directory: RunDirectory, status: str) -> Steps:
    """(what for, command), for a run that ended with this status."""
    if status in ("interrupted", "preempted"):
        return (("go on", _go_on(config, directory)),)
    curves = config.tensorboard_log_dir or directory.tensorboard
    return (
        ("see the curves", f"tensorboard --logdir={shlex.quote(str(curves))}"),
        *_use(config, directory),
    )


def _go_on(config: JobConfig, directory: RunDirectory) -> str:
    if config.model_def is None:  # trained from Python objects, which only Python has
        return f"elasticdl.train(..., output={str(directory.path)!r}, resume=True)"
    return f"elasticdl train --resume --output={shlex.quote(str(directory.path))}"


def _use(config: JobConfig, directory: RunDirectory) -> Steps:
    if config.model_def is None:
        given = f"trained_model={str(directory.path)!r}"
        return (
            ("evaluate it", f"elasticdl.evaluate(model, data, {given})"),
            ("predict with it", f"elasticdl.predict(model, data, {given}).predictions"),
        )
    model = f"--trained_model={shlex.quote(str(directory.path))}"
    data = shlex.quote(config.validation_data or "PATH")
    return (
        ("evaluate it", f"elasticdl evaluate {model} --data={data}"),
        ("predict with it", f"elasticdl predict {model} --data={data} --output=predictions.csv"),
    )
