"""What is printed when a job has ended: the summary on stdout, and what to try next."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from elasticdl.runtime.result import Result

__all__ = ["INTERRUPTED", "PREEMPTED", "report"]

INTERRUPTED = 130
"""The exit code that a shell gives to a command which Ctrl-C ended."""
PREEMPTED = 143
"""The same for SIGTERM, the signal of a cluster that wants its machine back."""


def report(result: Result) -> int:
    """Print a job's result and return its exit code."""
    if result.text is not None:
        click.echo(result.text.rstrip("\n"))
        return 0
    if sys.stdout.isatty():
        _table(result)
    else:
        click.echo(str(result))
    for purpose, command in result.next_steps:
        click.echo(f"\nTo {purpose}:\n  {command}")
    return {"interrupted": INTERRUPTED, "preempted": PREEMPTED}.get(result.status, 0)


def _table(result: Result) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False)
    for name, value in result.rows:
        table.add_row(Text(name, style="bold"), Text(value))
    Console().print(table)
