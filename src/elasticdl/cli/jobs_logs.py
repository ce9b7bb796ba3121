"""`elasticdl jobs logs`."""

from __future__ import annotations

import signal

import click

from elasticdl.cli.jobs_options import on_cluster, say, say_goes_on
from elasticdl.cli.outcome import INTERRUPTED, PREEMPTED
from elasticdl.cli.run_words import plain
from elasticdl.errors import InvalidValue

__all__ = ["logs"]


@click.command()
@click.argument("job")
@click.option("-f", "--follow", is_flag=True, help="Go on until the job ends.")
@click.option("--worker", metavar="N", help="What this worker printed, instead of the events.")
@click.option("--tail", metavar="N", help="Only the last N lines.  [default: all]")
@on_cluster
def logs(
    job: str,
    follow: bool,
    worker: str | None,
    tail: str | None,
    cluster: str | None,
    namespace: str | None,
) -> int:
    """Show what a job says.

    Its events as lines; on Kubernetes what its driver prints.
    Ctrl-C ends the looking. The job goes on.
    """
    from elasticdl.runtime.jobs.jobs import jobs_at

    try:
        with jobs_at(cluster, namespace) as jobs:
            wanted = _count(tail)
            jobs.logs(job, say, _show, worker=worker, tail=wanted, follow=follow)
    except KeyboardInterrupt as stopped:
        say_goes_on(job, cluster, namespace)
        return PREEMPTED if stopped.args == (signal.SIGTERM,) else INTERRUPTED
    return 0


def _show(line: str) -> None:
    click.echo(plain(line, indent=4))


def _count(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal():
        raise InvalidValue(f"Invalid tail {text!r}. Give a number of lines, for example 20.")
    return int(text)
