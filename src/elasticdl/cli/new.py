"""`elasticdl new`."""

from __future__ import annotations

import shlex

import click

__all__ = ["new"]


@click.command()
@click.argument("project")
def new(project: str) -> None:
    """Write a project with an experiment that runs.

    PROJECT is a directory that does not exist yet, or is empty. It gets the five components of a classifier
    of digits, a config, and a small data set of real digits.
    """
    from elasticdl.experiments.new_project import write_project

    written = write_project(project)
    click.echo(f"Wrote {written.num_files} files to {written.directory}.")
    click.echo(
        f"\nTo run it:\n  cd {shlex.quote(project)}\n"
        "  elasticdl run --run_name baseline --data_dir data"
    )
