"""`elasticdl schema`."""

from __future__ import annotations

import json
from pathlib import Path

import click

__all__ = ["schema"]


@click.command()
@click.option("--output", "-o", metavar="FILE", help="Write it there instead.")
def schema(output: str | None) -> None:
    """Print the schema of an experiment's config.

    Editors complete and check a config.yaml by it (JSON Schema, draft 2020-12).
    """
    from elasticdl.experiments.config import json_schema
    from elasticdl.storage import place, write_file

    text = json.dumps(json_schema(), indent=2) + "\n"
    if output is None:
        click.echo(text, nl=False)
        return
    write_file(place(output), text.encode())
    click.echo(f"Wrote {output}. To use it, begin a config.yaml with this line:")
    click.echo(f"# yaml-language-server: $schema={Path(output).name}")
