"""`elasticdl sql`: run statements that are given, in a file, piped, or typed at a prompt."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from elasticdl.cli.lazy import LazyGroup
from elasticdl.cli.options import cluster_job, cluster_params, write_groups
from elasticdl.cli.outcome import report
from elasticdl.cli.page import no_dashboard, page
from elasticdl.cli.presentation import Presentation
from elasticdl.cli.sql_options import (
    LEVELS,
    chosen,
    db_option,
    level_option,
    models_option,
    zoo_option,
)
from elasticdl.errors import InvalidValue, UnknownName, near_match
from elasticdl.job.config import JobConfig
from elasticdl.job.parse import parse_int

if TYPE_CHECKING:
    from elasticdl.runtime.result import Result

__all__ = ["sql"]

EXAMPLE = """
\b
Examples:
  elasticdl sql --db duckdb:///shop.db "SELECT * FROM customers LIMIT 5"
  elasticdl sql "SELECT * FROM 'customers.csv' TO TRAIN DNNClassifier LABEL left INTO leaving"
  elasticdl sql "SELECT * FROM 'new.csv' TO PREDICT USING leaving" --output predicted.parquet
  elasticdl sql -f statements.sql
  elasticdl sql
"""

FORMATS = ("table", "csv", "json", "parquet")
COMMANDS = {
    "serve": (
        "elasticdl.cli.sql_serve:serve",
        "Serve SQL over gRPC, for SQLFlow's clients.",
    ),
    "export": (
        "elasticdl.cli.sql_export:export",
        "Write the rows of a SELECT to RecordIO files.",
    ),
}


class _SqlGroup(LazyGroup):
    """Takes a statement as well as the name of a command, and options before and after the statement."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] in COMMANDS:
            return super().parse_args(ctx, args)
        ctx.allow_interspersed_args = True
        ctx.args = click.Command.parse_args(self, ctx, args)
        if not ctx.resilient_parsing:
            _refuse_slips(ctx.args)
        return ctx.args

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_groups(self, ctx, formatter, "Options")
        self.format_commands(ctx, formatter)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["[OPTIONS] [STATEMENT]", "| COMMAND [OPTIONS]"]


@click.command(
    cls=_SqlGroup,
    lazy=COMMANDS,
    epilog=EXAMPLE,
    invoke_without_command=True,
    params=cluster_params(),
    context_settings={"allow_extra_args": True},
)
@click.option("--file", "-f", metavar="FILE", help="Read the statements from a file; - is stdin.")
@db_option()
@models_option()
@zoo_option()
@click.option(
    "--format",
    "format_",
    metavar=f"[{'|'.join(FORMATS)}]",
    help="How rows are written.  [default: by the name of --output, else table]",
)
@click.option("--output", metavar="FILE", help="Write the rows to a file.")
@click.option("--overwrite", is_flag=True, help="Replace the file if it exists.")
@click.option(
    "--limit", metavar="INT", help="Rows to show.  [default: 40 of a table, else all of them]"
)
@click.option("--seed", metavar="INT", help="Of trainings.  [default: another one each time]")
@click.option(
    "--num_workers",
    metavar="N|MIN:MAX",
    help="Processes that train together, where WITH says nothing else.  [default: this one alone]",
)
@click.option(
    "--ray_address",
    metavar="TEXT",
    help="A Ray cluster: auto, ray://host:port or host:port.  [default: a Ray of the statement's own]",
)
@click.option(
    "--spool",
    metavar="DIR",
    help="Where rows are put for workers, who must see it.  [default: that of temporary files]",
)
@level_option()
@no_dashboard
@click.pass_context
def sql(context: click.Context, /, **options: Any) -> int | None:
    """Run SQL that may also train and predict.

    STATEMENT is one statement or several, with semicolons between them. Without it they are read from stdin, or on a
    terminal typed at a prompt.
    """
    if context.invoked_subcommand is not None:
        return None
    presentation: Presentation = context.obj
    from elasticdl.cli.sql_run import Settings, run, start_prompt

    level = chosen("log_level", options["log_level"], LEVELS)
    presentation.full_traceback = level == "DEBUG"
    presentation.model_zoo = options["model_zoo"]
    job = cluster_job(options, "ray_address")
    text = _text(context.args, options["file"])
    if job.cluster is not None:
        return report(_on_cluster(job, text, level, options))
    settings = Settings(
        db=options["db"],
        models=options["models"],
        model_zoo=options["model_zoo"],
        log_level=level,
        seed=_number("seed", options["seed"]),
        format=options["format_"] and chosen("format", options["format_"], FORMATS),
        output=options["output"],
        overwrite=options["overwrite"],
        limit=_number("limit", options["limit"]),
        train_defaults=_train_defaults(job, options["ray_address"]),
        spool=options["spool"],
    )
    with page(level, is_off=options["no_dashboard"], only_lasting=True):
        if text is None:
            return start_prompt(settings, presentation)
        run(text, settings)
    return 0


def _train_defaults(job: JobConfig, ray_address: str | None) -> dict[str, Any]:
    given = {
        "num_workers": job.num_workers,
        "ray_address": ray_address,
        "worker_resource_request": job.worker_resource_request,
    }
    return {name: value for name, value in given.items() if value is not None}


def _on_cluster(job: JobConfig, text: str | None, level: str, options: dict[str, Any]) -> Result:
    if text is None:
        raise InvalidValue("A prompt cannot be sent to a cluster. Give a STATEMENT or a --file.")
    if options["spool"] is not None:
        raise InvalidValue(
            "Invalid --spool with --cluster: it is the first --volume. Leave it out."
        )
    from elasticdl.sql.on_cluster import run_on_cluster

    flags = [f"--log_level={level}"]
    flags += [
        f"--{name.rstrip('_')}={options[name]}"
        for name in ("format_", "limit", "seed")
        if options[name] is not None
    ]
    flags += ["--overwrite"] if options["overwrite"] else []
    return run_on_cluster(
        job,
        text,
        db=options["db"],
        models=options["models"],
        model_zoo=options["model_zoo"],
        output=options["output"],
        flags=flags,
    )


def _text(args: list[str], file: str | None) -> str | None:
    """The statements; None when they are to be typed."""
    if args and file:
        raise InvalidValue("A statement and a --file were given. Give one of them.")
    if args:
        return args[0]
    if file is not None and file != "-":
        from elasticdl.cli.sql_run import read_text

        return read_text(file)
    return None if file is None and sys.stdin.isatty() else sys.stdin.read()


def _refuse_slips(args: list[str]) -> None:
    if not args:
        return
    if args[0] in COMMANDS:
        raise InvalidValue(
            f"The options of 'elasticdl sql {args[0]}' come after it. Write: elasticdl sql {args[0]} --..."
        )
    if len(args) > 1:
        raise InvalidValue(
            f"Unexpected {args[1]!r}: 'elasticdl sql' takes one STATEMENT. Put quotes around the whole of it."
        )
    if args[0].isidentifier() and (match := near_match(args[0], COMMANDS)):
        raise UnknownName(f"Unknown command 'elasticdl sql {args[0]}'. Did you mean {match!r}?")


def _number(name: str, value: str | None) -> int | None:
    if value is None:
        return None
    number = parse_int(name, value)
    if number < 0:
        raise InvalidValue(f"Invalid --{name} {value!r}: give a number that is not below 0.")
    return number
