"""`elasticdl zoo list`."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import click

from elasticdl.cli.presentation import Presentation
from elasticdl.cli.table import columns

if TYPE_CHECKING:
    from elasticdl.contract.listing import ZooModel

__all__ = ["list_"]


@click.command("list")
@click.option(
    "--model_zoo",
    metavar="TEXT",
    default=".",
    help="Directory of the model files.  [default: the working directory]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_(presentation: Presentation, model_zoo: str, as_json: bool) -> None:
    """List the models of a zoo.

    The first column is what to give to --model_def; the third what --model_params may hold.
    """
    presentation.model_zoo = model_zoo
    from elasticdl.contract.listing import list_models

    models = list_models(model_zoo)
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(model) for model in models], indent=2))
    elif not models:
        click.echo(f"There is no model in {model_zoo}. Name another directory with --model_zoo.")
    else:
        rows = [[m.name, m.form, _parameters(m) or "-", m.summary] for m in models]
        click.echo(columns(["model", "form", "parameters", "description"], rows))


def _parameters(model: ZooModel) -> str:
    return ", ".join(
        name if default is None else f"{name}={default}" for name, default in model.parameters
    )
