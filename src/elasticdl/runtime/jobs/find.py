"""Which run a user means, and which runs there are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from elasticdl.artifacts.run_directory import RunDirectory
from elasticdl.errors import InvalidValue, NotFound, StorageFailure, nearest
from elasticdl.runtime.jobs.account import Account, account_of
from elasticdl.runtime.jobs.record import described, events_of, is_run
from elasticdl.storage import children, is_local, storage_errors
from elasticdl.tracking.words import some

__all__ = ["RUNS", "account", "find_run", "list_runs", "short_name"]

RUNS = Path("elasticdl_runs")
"""Where runs are that were given no --output."""
CONFIG = "config.yaml"


def find_run(job: str) -> RunDirectory:
    """The run that a user means: its directory, its name below elasticdl_runs/, or the name of its job.

    Of several runs of a job it is the one that runs, or else the newest.

    Raises:
      NotFound: there is none.
      InvalidValue: several of that job run.
    """
    for directory in (RunDirectory(job), RunDirectory(RUNS / job) if _is_name(job) else None):
        if directory is not None and is_run(directory):
            return directory
    below = {d.path.name: d for d in _runs_below(RunDirectory(RUNS))}
    named = [d for name, d in below.items() if name.rpartition("-")[0] == job]
    if not named:
        raise _unknown(job, list(below))
    running = [d for d in named if d.holder is not None]
    if len(running) > 1:
        names = some([d.path.name for d in running])
        raise InvalidValue(f"Several runs of {job!r} are running: {names}. Name one of them.")
    return (running or sorted(named, key=_begun))[-1]


def list_runs(places: Sequence[str]) -> list[Account]:
    """The runs in these directories, or below elasticdl_runs/; each may be a run too. The newest first.

    Raises:
      NotFound: one of them is no directory.
    """
    found: dict[str, RunDirectory] = {}
    for given in places or [str(RUNS)]:
        here = RunDirectory(given)
        with storage_errors(here.path, doing="read"):
            if places and not here.path.is_dir():
                raise NotFound(f"There is no directory {given}. Give a run or a directory of runs.")
        runs = [here] if is_run(here) else _runs_below(here)
        found |= {str(run.path): run for run in runs}
    accounts = [_as_far_as_it_can_be_read(run) for run in found.values()]
    return sorted(accounts, key=lambda one: (one.started or 0.0, one.name), reverse=True)


def account(directory: RunDirectory) -> Account:
    """What became of a run so far."""
    holder = directory.holder  # first: what is told after it is more than it needs to be
    return account_of(
        short_name(directory),
        str(directory.path),
        described(directory),
        events_of(directory),
        holder,
        is_experiment=bool((directory.path / CONFIG).exists()),
    )


def _as_far_as_it_can_be_read(directory: RunDirectory) -> Account:
    """One that cannot be read does not hide the others."""
    try:
        return account(directory)
    except StorageFailure as error:
        name, where = short_name(directory), str(directory.path)
        return Account(name, where, status="unreadable", message=str(error))


def short_name(directory: RunDirectory) -> str:
    """By which `find_run` finds it from here."""
    path = directory.path
    is_below = is_local(path) and Path(str(path)).resolve().parent == RUNS.resolve()
    return str(path.name) if is_below else str(path)


def _runs_below(directory: RunDirectory) -> list[RunDirectory]:
    with storage_errors(directory.path, doing="read"):
        found = [RunDirectory(child) for child in children(directory.path) if child.is_dir()]
    return [run for run in found if is_run(run)]


def _is_name(job: str) -> bool:
    return "/" not in job and job not in ("", ".", "..")


def _begun(directory: RunDirectory) -> float:
    file = directory.job if directory.job.exists() else directory.events
    return float(file.stat().st_mtime)


def _unknown(job: str, names: list[str]) -> NotFound:
    here = RunDirectory(job)
    with storage_errors(here.path, doing="read"):
        is_directory = here.path.is_dir()
    if is_directory:
        below = [run.path.name for run in _runs_below(here)]
        advice = f"It holds the runs {some(below)}: name one of them." if below else ""
        advice = advice or "Give the --output of the run."
        return NotFound(
            f"{job} is no run: it has neither job.json nor events.jsonl. {advice}".rstrip()
        )
    jobs = {name.rpartition("-")[0] or name for name in names}
    help_ = nearest(job, [*names, *jobs]) if names else ""
    return NotFound(
        f"There is no run {job!r}: it is no run directory, and there is no elasticdl_runs/{job}-1. "
        f"{help_}{' ' if help_ else ''}Give the --output of the run."
    )
