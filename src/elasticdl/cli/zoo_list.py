"""`elasticdl zoo list`."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import click

from elasticdl.cli.presentation import Presentation
from elasticdl.cli.table import columns
from elasticdl.errors import InvalidValue, MissingPackage

if TYPE_CHECKING:
    from elasticdl.contract.listing import ZooModel

__all__ = ["list_"]


@click.command("list")
@click.argument("zoo", required=False)
@click.option(
    "--model_zoo",
    metavar="TEXT",
    help="The same as ZOO.  [default: the working directory]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_(
    presentation: Presentation, zoo: str | None, model_zoo: str | None, as_json: bool
) -> None:
    """List the models of ZOO, a directory or a Git address.

    The first column is what to give to --model_def; the third what --model_params may hold.
    """
    if zoo and model_zoo:
        raise InvalidValue("The zoo was given twice. Give it alone or with --model_zoo.")
    from elasticdl.contract.git_zoo import fetch_zoo
    from elasticdl.contract.listing import list_models
    from elasticdl.contract.requirements import check_requirements

    fetched = fetch_zoo(zoo or model_zoo, lambda line: click.echo(line, err=True))
    presentation.model_zoo = str(fetched.directory)
    models = list_models(fetched.directory)
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(model) for model in models], indent=2))
    elif not models:
        click.echo(f"There is no model in {fetched.name}. Name another zoo.")
    else:
        rows = [[m.name, m.form, _parameters(m) or "-", m.summary] for m in models]
        click.echo(columns(["model", "form", "parameters", "description"], rows))
    try:
        check_requirements(fetched.directory)
    except MissingPackage as error:
        # The files were read and not run, so there is a list all the same.
        click.echo(f"Note: {error}", err=True)


def _parameters(model: ZooModel) -> str:
    return ", ".join(
        name if default is None else f"{name}={default}" for name, default in model.parameters
    )
