"""`elasticdl jobs stop` and `elasticdl jobs wait`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import click

from elasticdl.cli.jobs_options import on_cluster, say, say_goes_on, say_steps
from elasticdl.cli.outcome import INTERRUPTED
from elasticdl.cli.run_words import plain
from elasticdl.errors import InvalidValue

if TYPE_CHECKING:
    from elasticdl.runtime.jobs.account import Account

__all__ = ["TIMED_OUT", "stop", "wait"]

TIMED_OUT = 3
"""The exit code of `elasticdl jobs wait` for a job that took longer."""


@click.command()
@click.argument("job")
@click.option(
    "--now",
    is_flag=True,
    help="On Kubernetes: delete the job, without a checkpoint; also one that has ended.",
)
@click.option("--no_wait", is_flag=True, help="Ask only, and do not wait until it has stopped.")
@on_cluster
def stop(job: str, now: bool, no_wait: bool, cluster: str | None, namespace: str | None) -> int:
    """Stop a job with a checkpoint.

    It is asked to, and waited for. It can go on later with --resume. A job on Kubernetes that does not run yet is
    deleted.
    """
    from elasticdl.runtime.jobs.jobs import Left, jobs_at

    try:
        with jobs_at(cluster, namespace) as jobs:
            ended = jobs.stop(job, say, now=now, waits=not no_wait)
            steps = () if ended is None else jobs.next_steps(ended)
    except Left as left:
        click.echo(f"\n{left}", err=True)
        return INTERRUPTED
    except KeyboardInterrupt:
        click.echo(f"\n{job} was not asked to stop: it goes on.", err=True)
        return INTERRUPTED
    if ended is not None:
        click.echo(_told(ended))
        say_steps(steps)
    return 0


@click.command()
@click.argument("job")
@click.option(
    "--timeout", metavar="S", help="Wait for so many seconds at most.  [default: for ever]"
)
@on_cluster
def wait(job: str, timeout: str | None, cluster: str | None, namespace: str | None) -> int:
    """Wait until a job has ended.

    The exit code is 0 for a job that is completed or stopped by its own rules, 1 for one that failed or was
    interrupted, preempted or killed, and 3 if it takes longer than --timeout.
    """
    from elasticdl.runtime.jobs.account import DONE
    from elasticdl.runtime.jobs.jobs import jobs_at

    try:
        with jobs_at(cluster, namespace) as jobs:
            ended = jobs.wait(job, _seconds(timeout))
    except KeyboardInterrupt:
        say_goes_on(job, cluster, namespace)
        return INTERRUPTED
    if ended is None:
        click.echo(f"{job} goes on after {timeout} s.", err=True)
        return TIMED_OUT
    click.echo(_told(ended))
    return 0 if ended.status in DONE else 1


def _told(account: Account) -> str:
    from elasticdl.cli.jobs_show import progress

    far = progress(account)
    why = f": {plain(account.message, indent=2)}" if account.message else ""
    return f"{plain(account.name)}: {plain(account.said)}{f' ({far})' if far else ''}{why}"


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < math.inf:
        raise InvalidValue(f"Invalid timeout {text!r}. Give seconds, for example 60.")
    return seconds
