"""What a pod runs: the same `elasticdl` command, with paths that are there and with the cluster's Ray."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elasticdl.contract.git_zoo import fetch_zoo
from elasticdl.contract.zoo import Zoo
from elasticdl.errors import ElasticDLError, InvalidValue
from elasticdl.job.config import DATA_OF, JobConfig, options
from elasticdl.runtime.assembly import check_given
from elasticdl.runtime.kubernetes.request import ClusterRequest

__all__ = ["ZOO", "Task", "as_flag", "check_places", "job_task", "worker_flags"]

ZOO = "/model_zoo"
PATHS = (
    "training_data",
    "validation_data",
    "prediction_data",
    "trained_model",
    "output",
    "checkpoint_dir",
    "checkpoint_dir_for_init",
    "tensorboard_log_dir",
)
OURS = ("distribution_strategy", "num_workers", "ray_address", "worker_resource_request")
"""Options that are said anew for the pods."""
WRITTEN = (
    "output",
    "checkpoint_dir",
    "tensorboard_log_dir",
    "runs_dir",
    "eval_reports_dir",
    "models",
)
"""Places that are written to: in a container they would be lost with it."""
ADVICE = "Put it into a bucket (s3://..., gs://...), or below the mount_path of a --volume"


@dataclass(frozen=True, kw_only=True)
class Task:
    """What to run there."""

    command: str
    base_name: str
    """Of the job, when the user gives none."""
    argv: tuple[str, ...]
    zoo: Path | None = None
    """The directory that goes into the image; None where the image has what is needed."""
    trained_in: str | None = None
    """The image that the job's model was trained in."""
    output: str | None = None
    secrets: Mapping[str, str] = field(default_factory=dict)


def job_task(config: JobConfig, request: ClusterRequest) -> Task:
    """Of `train`, `evaluate` and `predict`.

    Raises:
      InvalidValue: something is only on this machine.
    """
    if not config.resume:
        check_given(config, {}, DATA_OF[config.command])
    if config.command == "predict" and config.trained_model is None:
        raise InvalidValue(
            "No trained model was given. Name the --output of a training with --trained_model."
        )
    if config.command != "evaluate" and config.output is None:
        raise InvalidValue(
            "An output must be given with --cluster: what pods write to their own disks is lost. Give --output an "
            "address in a bucket (s3://..., gs://...), or a directory below the mount_path of a --volume."
        )
    check_places(config, request, {name: getattr(config, name) for name in PATHS})
    zoo, inside = _zoo(config)
    flags = [
        as_flag(option.name, getattr(config, option.name))
        for option in options(config.command)
        if option.name in config.given
        and not option.kubernetes
        and option.name not in (*OURS, "model_zoo", "job_name")
    ]
    if inside is not None:
        flags.insert(0, f"--model_zoo={inside}")
    return Task(
        command=config.command,
        base_name=_base_name(config),
        argv=("elasticdl", config.command, *flags, *worker_flags(request)),
        zoo=zoo,
        trained_in=_trained_in(config),
        output=config.output,
    )


def worker_flags(request: ClusterRequest) -> tuple[str, ...]:
    """How the command in the pod finds its workers: one in each pod, since each takes all that Ray has there."""
    least, most = request.workers
    resources = f"cpu={math.ceil(request.worker.cpus)}"
    if request.worker.gpus:
        resources += f",gpu={int(request.worker.gpus)}"
    return (
        "--distribution_strategy=AllreduceStrategy",
        f"--num_workers={least if least == most else f'{least}:{most}'}",
        f"--worker_resource_request={resources}",
        "--ray_address=auto",
    )


def check_places(
    config: JobConfig, request: ClusterRequest, places: Mapping[str, str | None]
) -> None:
    """Refuse paths that only this machine has.

    An image of the user's own may have more to read than is known here, and pods that are changed more to write to.
    """
    for name, given in places.items():
        for path in _several(name, given):
            if request.sees(path):
                continue
            if "://" in path:
                raise InvalidValue(
                    f"Invalid {name} {path!r}: each pod would have something else there. {ADVICE}."
                )
            if not os.path.isabs(path):
                raise InvalidValue(
                    f"Invalid {name} {path!r}: it is a path of this machine, which pods do not see. {ADVICE}, and "
                    "give its whole path."
                )
            is_of_image = path.startswith(f"{ZOO}/") or config.image_name is not None
            if not ((is_of_image and name not in WRITTEN) or config.cluster_spec):
                raise InvalidValue(
                    f"Invalid {name} {path!r}: pods do not see it. {ADVICE}{_mounts(request)}."
                )


def _several(name: str, given: str | None) -> Iterable[str]:
    if given is None:
        return ()
    parts = given.split(",") if name.endswith("_data") else [given]
    return (part.strip() for part in parts if part.strip())


def _mounts(request: ClusterRequest) -> str:
    paths = [volume.mount_path for volume in request.volumes]
    return f" (now: {', '.join(paths)})" if paths else ""


def _zoo(config: JobConfig) -> tuple[Path | None, str | None]:
    """The directory to put into the image, and where the pods find it."""
    if config.model_def is None and config.model_zoo is None:
        return None, None
    if config.image_name is None:
        zoo = Path(fetch_zoo(config.model_zoo).directory)
        if config.model_def is not None:
            Zoo(zoo).check(config.model_def)
        return zoo, ZOO
    if config.model_zoo is not None and not os.path.isabs(config.model_zoo):
        raise InvalidValue(
            f"Invalid model_zoo {config.model_zoo!r} with --image_name: the image has its own. Give the whole path in "
            f"the image, or leave it out for {ZOO}."
        )
    return None, config.model_zoo or ZOO


def _base_name(config: JobConfig) -> str:
    return (config.model_def or config.command).split(".")[0]


def _trained_in(config: JobConfig) -> str | None:
    """The image of a trained model, where it can be read from here."""
    if config.trained_model is None or config.command == "train":
        return None
    from elasticdl.artifacts.stored_model import find_trained_model

    try:
        return find_trained_model(config.trained_model).message.docker_commit_id or None
    except ElasticDLError:
        return None  # on a volume, which only the pods see


def as_flag(name: str, value: Any) -> str:
    """An option as `JobConfig.parse` reads it."""
    return f"--{name}={_text(value)}"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "; ".join(f"{key}={item!r}" for key, item in value.items())
    return str(value)
