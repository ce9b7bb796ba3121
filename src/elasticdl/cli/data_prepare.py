"""`elasticdl data prepare`."""

from __future__ import annotations

import functools
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from elasticdl.cli.presentation import Presentation
from elasticdl.errors import ContractError
from elasticdl.job.parse import parse_int

__all__ = ["prepare"]

EXAMPLE = """
\b
Example, for images in directories named by their digit:
  elasticdl data prepare --model_zoo=model_zoo \\
    --model_def=mnist.mnist_functional.custom_model \\
    --input=images/train --output=data/train
"""

OnProgress = Callable[[int, int], None]


@click.command(epilog=EXAMPLE)
@click.option("--model_zoo", metavar="TEXT", help="Directory or Git address of the model files.")
@click.option(
    "--model_def",
    metavar="TEXT",
    required=True,
    help="The model whose file has prepare_data_for_a_single_file.",
)
@click.option(
    "--input",
    "inputs",
    metavar="TEXT",
    required=True,
    help="Raw files: a file, directory (with all below it) or glob; several with commas.",
)
@click.option("--output", metavar="TEXT", required=True, help="Directory to write the shards to.")
@click.option(
    "--records_per_shard", metavar="INT", default="4096", help="Records in a file.  [default: 4096]"
)
@click.option("--num_workers", metavar="INT", help="Processes.  [default: one a core]")
@click.option(
    "--compression", metavar="[none|snappy|gzip]", default="snappy", help="[default: snappy]"
)
@click.pass_obj
def prepare(
    presentation: Presentation,
    /,
    model_zoo: str | None,
    model_def: str,
    inputs: str,
    output: str,
    **options: str | None,
) -> None:
    """Turn raw files into RecordIO shards with a model's own function.

    The model's file has `prepare_data_for_a_single_file(filename)`, which returns a file's record.
    """
    numbers = {
        name: parse_int(name, options[name])
        for name in ("records_per_shard", "num_workers")
        if options[name] is not None
    }
    from elasticdl.contract.git_zoo import fetch_zoo
    from elasticdl.data.prepare import prepare as write_shards

    # Once and at one commit, for all the processes.
    zoo = fetch_zoo(model_zoo, lambda line: click.echo(line, err=True))
    presentation.model_zoo = str(zoo.directory)
    if zoo.name != str(zoo.directory):
        model_zoo = zoo.name
    load = functools.partial(load_function, model_def, model_zoo)
    with _progress() as on_progress:
        made = write_shards(
            inputs,
            output,
            load,
            compression=options["compression"] or "snappy",
            on_progress=on_progress,
            **numbers,
        )
    click.echo(
        f"Wrote {made.num_records:,} records of {made.num_files:,} files to {output}, in "
        f"{len(made.shards):,} {'shard' if len(made.shards) == 1 else 'shards'}."
    )
    click.echo(f"\nTo train on it:\n  {_train_command(model_zoo, model_def, output)}")


def load_function(model_def: str, model_zoo: str | None) -> Callable[..., Any]:
    """The user's function; called once in each worker process."""
    from elasticdl.contract.load import load_spec
    from elasticdl.quiet import load_tensorflow

    load_tensorflow()
    spec = load_spec(model_def, model_zoo=model_zoo, training=False)
    if spec.prepare_data is None:
        raise ContractError(
            f"The file of {model_def!r} has no prepare_data_for_a_single_file. "
            "Write one that takes (filename) and returns the file's record as bytes."
        )
    return spec.prepare_data


@contextmanager
def _progress() -> Iterator[OnProgress]:
    """A bar on a terminal, a line for every tenth elsewhere."""
    if not sys.stderr.isatty():
        yield _say_every_tenth()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = ("preparing", BarColumn(), MofNCompleteColumn(), "files", TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _say_every_tenth() -> OnProgress:
    said = 0

    def on_progress(done: int, total: int) -> None:
        nonlocal said
        if (tenths := 10 * done // total) > said:
            said = tenths
            print(f"prepared {done:,} of {total:,} files", file=sys.stderr, flush=True)

    return on_progress


def _train_command(model_zoo: str | None, model_def: str, output: str) -> str:
    zoo = [f"--model_zoo={model_zoo}"] if model_zoo else []
    return shlex.join(
        ["elasticdl", "train", *zoo, f"--model_def={model_def}", f"--training_data={output}"]
    )
