"""Jobs on this machine or on Ray: each is a run directory."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from elasticdl.artifacts.run_directory import RunDirectory
from elasticdl.errors import ElasticDLError, InvalidValue
from elasticdl.job.config import JobConfig
from elasticdl.job.parse import parse_workers, workers_text
from elasticdl.runtime.jobs.account import DONE, RUNNING, Account
from elasticdl.runtime.jobs.find import account, find_run, list_runs
from elasticdl.runtime.jobs.jobs import Accounts, Say, Steps, Workers, quiet
from elasticdl.runtime.jobs.logs import log_lines
from elasticdl.runtime.jobs.record import described
from elasticdl.runtime.jobs.stop import stop, wait_for

__all__ = ["RunDirectories"]


class RunDirectories:
    """Jobs by their run directories, at any address."""

    def list(self, places: Sequence[str]) -> Accounts:
        return list_runs(places)

    def account(self, job: str, say: Say = quiet) -> Account:
        return account(find_run(job))

    def logs(
        self, job: str, say: Say, show: Say, *, worker: str | None, tail: int | None, follow: bool
    ) -> None:
        for line in log_lines(find_run(job), worker=worker, tail=tail, follow=follow):
            show(line)

    def stop(self, job: str, say: Say, *, now: bool, waits: bool) -> Account | None:
        directory = find_run(job)
        if now:
            holder = directory.holder
            who = f"end {holder} yourself" if holder else "it does not run"
            raise InvalidValue(
                f"--now is for jobs on Kubernetes. The run in {directory.path}: {who}."
            )
        return stop(directory, say, waits=waits)

    def scale(self, job: str, workers: Workers, say: Say) -> None:
        from elasticdl.runtime.elastic.scaling import ask

        directory = find_run(job)
        found = account(directory)
        if found.status != RUNNING:
            raise InvalidValue(
                f"The run in {directory.path} has ended ({found.said}). Go on with it with --resume and another "
                "--num_workers."
            )
        event = ask(directory, workers)
        before, after = (
            workers_text(parse_workers(name, event[name])) for name in ("before", "num_workers")
        )
        say(f"scaling from {before} to {after} workers")

    def wait(self, job: str, timeout_s: float | None) -> Account | None:
        return wait_for(find_run(job), timeout_s)

    def next_steps(self, account: Account) -> Steps:
        name = shlex.quote(account.name)
        if account.status == RUNNING:
            return (
                ("see what it says", f"elasticdl jobs logs {name} --follow"),
                ("stop it with a checkpoint", f"elasticdl jobs stop {name}"),
            )
        if account.command == "run":
            return () if account.status in DONE else _experiment(Path(account.where))
        return _after(RunDirectory(account.where), account.status)


def _after(directory: RunDirectory, status: str) -> Steps:
    from elasticdl.runtime.next_steps import next_steps

    try:
        config = JobConfig.from_json(described(directory))
    except (ElasticDLError, TypeError, ValueError):
        return ()  # nobody knows any more what it was
    return next_steps(config, directory, status if status in DONE else "interrupted")


def _experiment(directory: Path) -> Steps:
    project = directory.parent
    if project.name != "runs":
        return ()
    root = shlex.quote(str(project.parent))
    command = f"elasticdl run --project_root={root} --run_name={shlex.quote(directory.name)}"
    return (("go on, with the flags that it had", command),)
