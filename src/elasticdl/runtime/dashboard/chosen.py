"""The runs that commands are given, read once: the same views are made of them as of those that the server reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from upath import UPath

from elasticdl.errors import StorageFailure
from elasticdl.runtime.dashboard.runs import UNREADABLE, Run, address_of
from elasticdl.runtime.jobs.find import find_run

__all__ = ["chosen", "default_directories"]


def chosen(jobs: Sequence[str]) -> list[Run]:
    """The runs that a user names as for `elasticdl jobs`.

    Raises:
      NotFound: there is no such run.
      StorageFailure: it cannot be read.
    """
    return [_read(job) for job in jobs]


def default_directories() -> list[str]:
    """Where runs are that were given no other place: elasticdl_runs/ and runs/ here, of them those that are there."""
    usual = ["elasticdl_runs", "runs"]
    return [name for name in usual if Path(name).is_dir()] or usual[:1]


def _read(job: str) -> Run:
    path = UPath(address_of(find_run(job).path))
    run = Run(path, path)
    run.refresh()
    if run.account.status == UNREADABLE:
        raise StorageFailure(run.account.message or f"Cannot read {path}.")
    return run
