"""An experiment on Kubernetes: the project goes into an image, and `elasticdl run` is run there."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from elasticdl.errors import InvalidValue
from elasticdl.experiments.config import load_config
from elasticdl.experiments.project import Project
from elasticdl.job.config import JobConfig
from elasticdl.runtime.kubernetes.command import ZOO, Task, check_places, worker_flags
from elasticdl.runtime.kubernetes.request import ClusterRequest
from elasticdl.runtime.kubernetes.submit import submit
from elasticdl.runtime.result import Result
from elasticdl.tracking.mlflow_address import credentials

__all__ = ["run_on_cluster"]

MLFLOW = "MLFLOW_TRACKING_URI"
MLFLOW_LOGIN = (
    "MLFLOW_TRACKING_USERNAME",
    "MLFLOW_TRACKING_PASSWORD",
    "MLFLOW_TRACKING_TOKEN",
)


def run_on_cluster(
    job: JobConfig,
    project_root: str,
    run_name: str,
    *,
    overrides: Sequence[str] = (),
    data_dir: str | None = None,
    runs_dir: str | None = None,
    eval_reports_dir: str | None = None,
    mlflow_tracking_uri: str | None = None,
    flags: Sequence[str] = (),
) -> Result:
    """Check the experiment here, and send it.

    Args:
      job: what is asked of the cluster.
      overrides, data_dir, runs_dir, eval_reports_dir, mlflow_tracking_uri: see `Experiment`; no MLflow without an
        address.
      flags: others of `elasticdl run`, as they are.

    Raises:
      InvalidValue: the experiment is wrong, or something of it is only on this machine.
    """
    request = ClusterRequest.of(job)
    project = Project.open(project_root, run_name)
    config = load_config(project.config_file, overrides)
    if runs_dir is None:
        raise InvalidValue(
            "A runs_dir must be given with --cluster: what pods write to their own disks is lost. Give --runs_dir an "
            "address in a bucket (s3://..., gs://...), or a directory below the mount_path of a --volume."
        )
    reports = eval_reports_dir or f"{runs_dir.rstrip('/')}/eval_reports"
    data = data_dir or getattr(config, "data_dir", None)
    places = {"data_dir": data, "runs_dir": runs_dir, "eval_reports_dir": reports}
    check_places(job, request, places)
    tracking, secrets = _tracking(mlflow_tracking_uri, flags)
    given = [f"--{name}={value}" for name, value in places.items() if value is not None]
    argv = (
        *("elasticdl", "run", f"--run_name={run_name}", f"--project_root={ZOO}"),
        *given,
        *(f"--set={override}" for override in overrides),
        *tracking,
        *flags,
        *worker_flags(request),
    )
    task = Task(
        command="run",
        base_name=run_name,
        argv=argv,
        zoo=None if job.image_name else project.root,
        output=f"{runs_dir.rstrip('/')}/{run_name}",
        secrets=secrets,
    )
    return submit(job, request, task)


def _tracking(
    address: str | None, flags: Sequence[str]
) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """How the run there finds MLflow: what holds a password is told in secret."""
    address = address or os.environ.get(MLFLOW)
    if "--no_mlflow" in flags:
        return (), {}
    if not address:
        return ("--no_mlflow",), {}
    if "://" not in address or address.startswith(("sqlite:", "file:")):
        raise InvalidValue(
            f"Invalid mlflow_tracking_uri {address!r}: it is a file, which each pod would have for itself. Give the "
            "address of a server, or --no_mlflow."
        )
    login = {name: os.environ[name] for name in MLFLOW_LOGIN if os.environ.get(name)}
    if any(credentials(address)) or "?" in address:
        return (), {MLFLOW: address, **login}
    return (f"--mlflow_tracking_uri={address}",), login
