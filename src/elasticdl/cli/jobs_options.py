"""What all commands about jobs share: where the jobs are, and the hint at Ctrl-C that they go on."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from elasticdl.cli.run_words import plain

if TYPE_CHECKING:
    from elasticdl.runtime.jobs.jobs import Steps

__all__ = ["on_cluster", "say", "say_goes_on", "say_steps"]

F = TypeVar("F", bound=Callable[..., Any])


def on_cluster(command: F) -> F:
    """The options --cluster and --namespace."""
    namespace = click.option(
        "--namespace", metavar="TEXT", help="Of the cluster.  [default: the context's]"
    )
    cluster = click.option(
        "--cluster",
        metavar="TEXT",
        help="Jobs on Kubernetes: kubernetes or kubernetes:CONTEXT.  [default: run directories]",
    )
    return cluster(namespace(command))


def say(line: str) -> None:
    """What is not the command's output."""
    click.echo(plain(line, indent=0), err=True)


def say_goes_on(job: str, cluster: str | None, namespace: str | None) -> None:
    """After Ctrl-C, which ends the looking and not the job."""
    given = {"cluster": cluster, "namespace": namespace}
    flags = "".join(f" --{k}={shlex.quote(v)}" for k, v in given.items() if v)
    click.echo(
        f"\nThe job goes on. Come back with: elasticdl jobs logs {shlex.quote(job)} --follow{flags}",
        err=True,
    )


def say_steps(steps: Steps) -> None:
    for purpose, command in steps:
        click.echo(f"\nTo {purpose}:\n  {plain(command)}")
