"""SQL on Kubernetes: the statements are read here, and run by `elasticdl sql` in a pod that reaches the database."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from elasticdl.contract.git_zoo import fetch_zoo
from elasticdl.errors import InvalidValue, StatementError
from elasticdl.job.config import JobConfig
from elasticdl.runtime.kubernetes.command import ZOO, Task, check_places, worker_flags
from elasticdl.runtime.kubernetes.request import ClusterRequest
from elasticdl.runtime.kubernetes.submit import submit
from elasticdl.runtime.result import Result
from elasticdl.sql.databases.url import read_address
from elasticdl.sql.parse import parse
from elasticdl.sql.point import point

__all__ = ["run_on_cluster"]

DATABASE = "ELASTICDL_DB"


def run_on_cluster(
    job: JobConfig,
    text: str,
    *,
    db: str | None,
    models: str,
    model_zoo: str | None = None,
    output: str | None = None,
    flags: Sequence[str] = (),
) -> Result:
    """Check the statements here, and send them.

    Without `num_workers` they run in the master's pod alone. With workers the rows go through a volume that all see.

    Raises:
      StatementError: the text cannot be read.
      InvalidValue: something is only on this machine.
    """
    request = ClusterRequest.of(job)
    if job.num_workers is None:
        request = replace(request, workers=(0, 0))
    address = read_address(db)
    _check_text(text, address.dialect)
    if address.path == ":memory:":
        raise InvalidValue(
            "A db must be given with --cluster: a database in memory is empty there. Give --db the address of one that "
            "pods reach, such as postgresql://user:password@host/database."
        )
    places = {"db": address.path or None, "models": models, "output": output}
    check_places(job, request, places)
    zoo = None if model_zoo is None or job.image_name else Path(fetch_zoo(model_zoo).directory)
    inside = () if model_zoo is None else (f"--model_zoo={ZOO}",)
    given = () if output is None else (f"--output={output}",)
    task = Task(
        command="sql",
        base_name="sql",
        argv=(
            *("elasticdl", "sql", f"--models={models}"),
            *inside,
            *given,
            *flags,
            *_workers(job, request),
            # A text may begin with a comment, which looks like a flag.
            *("--", text),
        ),
        zoo=zoo,
        # The address may hold a password.
        secrets={DATABASE: db or os.environ.get(DATABASE, "")},
    )
    return submit(job, request, task)


def _check_text(text: str, dialect: str) -> None:
    try:
        found = parse(text, dialect)
    except StatementError as error:
        if error.start is None:
            raise
        end = error.end if error.end is not None else error.start
        raise StatementError(f"{error.message}\n{point(text, error.start, end)}") from error
    if not found:
        raise InvalidValue("There is no statement to run. Give one.")


def _workers(job: JobConfig, request: ClusterRequest) -> tuple[str, ...]:
    if request.workers == (0, 0):
        return ()
    if not request.volumes and job.cluster_spec is None:
        raise InvalidValue(
            f"Invalid num_workers {job.num_workers!r} without a volume: workers in other pods read the rows from a "
            "volume that all of them see. Give --volume=claim_name=...,mount_path=/..., or leave num_workers out."
        )
    spool = (f"--spool={request.volumes[0].mount_path}",) if request.volumes else ()
    return (*worker_flags(request)[1:], *spool)
