"""`elasticdl compare`."""

from __future__ import annotations

import json
from typing import Any

import click

from elasticdl.cli.run_words import number, seconds
from elasticdl.cli.table import columns
from elasticdl.errors import InvalidValue

__all__ = ["compare"]

EXAMPLE = """
\b
Example:
  elasticdl compare elasticdl_runs/mnist-1 elasticdl_runs/mnist-2
"""
WIDEST = 40


@click.command(epilog=EXAMPLE)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--all", "shows_all", is_flag=True, help="Show also the options that are the same.")
def compare(runs: tuple[str, ...], as_json: bool, shows_all: bool) -> None:
    """Compare the metrics and options of runs.

    RUN is a run directory, here or at an address, or its name below elasticdl_runs/. A star marks the best value.
    Options are shown where they differ.
    """
    if len(runs) < 2:
        raise InvalidValue(f"There is nothing to compare {runs[0]!r} with. Name two runs or more.")
    from elasticdl.runtime.dashboard.chosen import chosen
    from elasticdl.runtime.dashboard.compare import compare as compared

    found = compared(chosen(runs))
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    header = ["", *(_short(run["name"]) for run in found["runs"])]
    click.echo(columns(header, _measured(found)))
    if options := [row for row in found["config"] if shows_all or row["differs"]]:
        told = [[row["key"], *map(_value, row["values"])] for row in options]
        click.echo("\n" + columns(["option", *header[1:]], told))
    else:
        click.echo("\nTheir options are the same.")


def _measured(found: dict[str, Any]) -> list[list[str]]:
    runs = found["runs"]
    rows = [
        ["status", *(run["said"] for run in runs)],
        ["step", *("-" if run["step"] is None else f"{run['step']:,}" for run in runs)],
    ]
    for metric in found["metrics"]:
        show = seconds if metric["name"] == "duration_s" else number
        cells = [show(value) or "-" for value in metric["values"]]
        if metric["best"] is not None:
            cells[metric["best"]] += " *"
        rows.append([_label(metric["name"]), *cells])
    return rows


def _label(name: str) -> str:
    """
    >>> _label("val_accuracy"), _label("best val_loss"), _label("examples_per_s")
    ('validation accuracy', 'best validation loss', 'examples a second')
    """
    known = {
        "loss": "training loss",
        "examples_per_s": "examples a second",
        "duration_s": "duration",
    }
    return known.get(name) or name.replace("val_", "validation ", 1)


def _value(value: Any) -> str:
    return "-" if value is None else _short(str(value))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= WIDEST else f"{line[: WIDEST - 3]}..."
