"""`elasticdl jobs list` and `elasticdl jobs status`."""

from __future__ import annotations

import dataclasses
import json
import math
import time
from typing import TYPE_CHECKING, Any

import click

from elasticdl.cli.jobs_options import on_cluster, say, say_steps
from elasticdl.cli.run_words import plain, seconds
from elasticdl.cli.table import columns
from elasticdl.errors import InvalidValue

if TYPE_CHECKING:
    from elasticdl.runtime.jobs.account import Account

__all__ = ["list_", "progress", "status"]

HEADER = ["name", "command", "status", "progress", "workers", "started", "duration", "where"]

FOREVER_S = 1e11
"""Longer than there are computers: a time that somebody wrote wrongly."""


@click.command("list")
@click.argument("places", nargs=-1, metavar="[DIR]...")
@on_cluster
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_(
    places: tuple[str, ...], cluster: str | None, namespace: str | None, as_json: bool
) -> None:
    """List jobs, the newest first.

    DIR is a run directory or a directory of runs, here or at an address. Without one it is elasticdl_runs.
    """
    if cluster and places:
        raise InvalidValue(
            f"A cluster has no directory {places[0]!r}. Give --cluster or directories."
        )
    from elasticdl.runtime.jobs.jobs import jobs_at

    with jobs_at(cluster, namespace) as jobs:
        found = jobs.list(places)
    if as_json:
        click.echo(_json([dataclasses.asdict(one) for one in found]))
    elif found:
        click.echo(columns(HEADER, [_row(one) for one in found]))
    else:
        where = "in this namespace" if cluster else f"in {', '.join(places) or 'elasticdl_runs'}"
        click.echo(f"There are no jobs {where}.")


@click.command()
@click.argument("job")
@on_cluster
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(job: str, cluster: str | None, namespace: str | None, as_json: bool) -> None:
    """Show how far a job is.

    JOB is the run directory, its name below elasticdl_runs/, or the name of the job: then it is the run of that
    job which runs, or else the newest. With --cluster it is the name of the job in the cluster.
    """
    from elasticdl.runtime.jobs.jobs import jobs_at

    with jobs_at(cluster, namespace) as jobs:
        found = jobs.account(job, say)
        steps = jobs.next_steps(found)
    if as_json:
        click.echo(_json(dataclasses.asdict(found)))
        return
    rows = [(plain(what), value) for what, value in _rows(found) if value]
    width = max(len(what) for what, _ in rows)
    for what, value in rows:
        is_said = what in ("message", "last warning")  # they may have lines
        click.echo(f"{what:<{width}}  {plain(value, indent=width + 2 if is_said else None)}")
    say_steps(steps)


def progress(account: Account) -> str:
    """`epoch 2/3, step 48`."""
    parts = []
    if account.epoch is not None:
        parts.append(f"epoch {account.epoch}/{account.num_epochs or '?'}")
    if account.step is not None:
        parts.append(f"step {account.step:,}")
    return ", ".join(parts)


def _json(value: Any) -> str:
    """
    >>> _json({"loss": float("nan"), "step": 3}).split()
    ['{', '"loss":', 'null,', '"step":', '3', '}']
    """
    return json.dumps(_finite(value), indent=2, allow_nan=False)


def _finite(value: Any) -> Any:
    """JSON has no word for a number that is none."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list | tuple) else value


def _row(account: Account) -> list[str]:
    cells = [
        account.name,
        account.command,
        account.said,
        progress(account),
        _workers(account),
        _moment(account.started),
        _duration(account),
        account.where,
    ]
    return [cell or "-" for cell in cells]


def _rows(account: Account) -> list[tuple[str, str]]:
    loss = "" if account.loss is None else f"{account.loss:.4f}"
    metrics = [(f"validation {name}", f"{value:.4f}") for name, value in account.metrics.items()]
    members = f" ({', '.join(account.workers)})" if account.workers else ""
    workers = _workers(account)
    changes = f"{account.changes}, the last: {account.change}" if account.change else ""
    return [
        ("job", account.name),
        ("status", account.said),
        ("message", account.message or ""),
        ("command", account.command),
        ("started", _moment(account.started)),
        ("ended" if account.ended else "duration", _end(account)),
        ("progress", progress(account)),
        ("training loss", loss),
        *metrics,
        ("workers", f"{workers}{members}" if workers else ""),
        ("changes of workers", changes),
        ("last warning", account.warning or ""),
        ("process", account.process or ""),
        ("where", account.where),
    ]


def _workers(account: Account) -> str:
    """`2`, or `2 of 2:4` where it may be another number."""
    if account.wanted is None:
        return ""
    now = str(len(account.workers))
    return now if account.wanted == now else f"{now} of {account.wanted}"


def _end(account: Account) -> str:
    if account.ended is None:
        return _duration(account)
    return f"{_moment(account.ended)}, after {_duration(account)}"


def _moment(when: float | None) -> str:
    """
    >>> _moment(1e300)
    '?'
    """
    if when is None:
        return ""
    try:
        return time.strftime("%F %T", time.localtime(when))
    except (OverflowError, OSError, ValueError):  # no clock of this world
        return "?"


def _duration(account: Account) -> str:
    """
    >>> from elasticdl.runtime.jobs.account import Account
    >>> _duration(Account("a", "b", started=0.0, ended=3725.0))
    '1 h 2 min'
    """
    if account.started is None:
        return ""
    passed = (time.time() if account.ended is None else account.ended) - account.started
    if not abs(passed) < FOREVER_S:
        return "?"
    return seconds(passed)  # of a clock that went back: zero
