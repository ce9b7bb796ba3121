"""`elasticdl plot`."""

from __future__ import annotations

import click

from elasticdl.errors import InvalidValue, OutputExists, near_match

__all__ = ["plot"]

EXAMPLE = """
\b
Example:
  elasticdl plot elasticdl_runs/mnist-1 elasticdl_runs/mnist-2 -o curves.png
"""
FORMATS = (".png", ".svg", ".pdf")


@click.command(epilog=EXAMPLE)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--output", "-o", metavar="FILE", required=True, help="Where to: a .png, .svg or .pdf file."
)
@click.option("--log", "is_log", is_flag=True, help="Draw losses on a logarithmic scale.")
@click.option("--overwrite", is_flag=True, help="Replace the file if it exists.")
def plot(runs: tuple[str, ...], output: str, is_log: bool, overwrite: bool) -> None:
    """Draw the curves of runs.

    RUN is a run directory, here or at an address, or its name below elasticdl_runs/. The loss and
    each metric have a panel, by step.
    """
    from elasticdl.storage import place, storage_errors, write_file

    where = place(output)
    _check_suffix(where.suffix.lower(), output)
    with storage_errors(where, doing="look at"):
        if where.exists() and not overwrite:
            raise OutputExists(f"The file {output} exists. Name another, or give --overwrite.")
    from elasticdl.runtime.dashboard.chosen import chosen
    from elasticdl.runtime.dashboard.curves import draw_curves

    picture = draw_curves(chosen(runs), where.suffix.lower()[1:], is_log=is_log)
    write_file(where, picture)
    click.echo(f"Wrote {output}.")


def _check_suffix(suffix: str, output: str) -> None:
    if suffix in FORMATS:
        return
    match = near_match(suffix, FORMATS) if suffix else None
    advice = (
        f"Did you mean {match!r}?" if match else f"Give a name that ends in {', '.join(FORMATS)}."
    )
    raise InvalidValue(
        f"Invalid --output {output!r}: its suffix says no format of pictures. {advice}"
    )
