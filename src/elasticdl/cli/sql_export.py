"""`elasticdl sql export`."""

from __future__ import annotations

import shlex

import click

from elasticdl.cli.sql_options import db_option

__all__ = ["export"]

EXAMPLE = """
\b
Example:
  elasticdl sql export "SELECT name, role, salary FROM 'employee.csv'" --output=data/employee
"""


@click.command(epilog=EXAMPLE)
@click.argument("select")
@click.option("--output", metavar="TEXT", required=True, help="Directory to write the files to.")
@click.option("--label", metavar="TEXT", help="The column to predict.  [default: the last one]")
@click.option("--no_label", is_flag=True, help="The rows have no label: they are to be predicted.")
@db_option()
def export(select: str, output: str, label: str | None, no_label: bool, db: str | None) -> None:
    """Write the rows of a SELECT to RecordIO files.

    Each record is a `tf.Example`. The schema is written beside them, and `sqlflow.elasticdl_input_function` reads both.
    """
    from elasticdl.sql.export import export as write

    made = write(
        db,
        select,
        output,
        label=label,
        has_label=not no_label,
        tell=lambda line: click.echo(line, err=True),
    )
    files = "file" if len(made.files) == 1 else "files"
    click.echo(f"Wrote {made.num_records:,} records to {output}, in {len(made.files):,} {files}.")
    click.echo(f"The schema is in {made.schema}.")
    if made.label is not None:
        flags = [f"--training_data={output}", "--input_fn=sqlflow.elasticdl_input_function"]
        click.echo(f"\nTo train on it, give these to elasticdl train:\n  {shlex.join(flags)}")
