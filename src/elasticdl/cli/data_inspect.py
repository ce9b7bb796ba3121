"""`elasticdl data inspect`."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import click

from elasticdl.cli.table import columns, size
from elasticdl.errors import InvalidValue
from elasticdl.job.parse import parse_int, parse_params

if TYPE_CHECKING:
    from elasticdl.data.inspect import Inspection

__all__ = ["inspect"]

MAX_SHARDS = 20


@click.command()
@click.argument("path")
@click.option(
    "--data_reader_params",
    metavar="NAME=VALUE,...",
    default="",
    help="Parameters for the reader: `columns=['a', 'b']; sep=','`.",
)
@click.option("--num_records", metavar="INT", default="3", help="Records to show.  [default: 3]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with all shards.")
def inspect(path: str, data_reader_params: str, num_records: str, as_json: bool) -> None:
    """Show what is in data files.

    PATH is a file, a directory or a glob; several with commas.
    """
    params = parse_params("data_reader_params", data_reader_params)
    wanted = parse_int("num_records", num_records)
    if wanted < 0:
        raise InvalidValue(f"Invalid num_records {num_records!r}: give 0 or more.")
    from elasticdl.data.inspect import inspect as look_into

    found = look_into(path, params, wanted)
    click.echo(json.dumps(_plain(found), default=str) if as_json else _text(found))


def _plain(found: Inspection) -> dict[str, Any]:
    return dataclasses.asdict(found)


def _text(found: Inspection) -> str:
    shown = [[shard.name, f"{shard.num_records:,}"] for shard in found.shards[:MAX_SHARDS]]
    hidden = len(found.shards) - len(shown)
    parts = [
        f"{found.format}: {found.num_records:,} records in {_counted(len(found.shards), 'shard')}, "
        f"{size(found.num_bytes)}",
        columns(["shard", "records"], shown) + (f"\n... and {hidden} more" if hidden else ""),
        *(_record(number, record) for number, record in enumerate(found.records)),
    ]
    return "\n\n".join(parts)


def _record(number: int, record: dict[str, Any] | str) -> str:
    if not isinstance(record, dict):
        return f"record {number}\n  {record}"
    rows = [[f"  {name}", str(value)] for name, value in record.items()]
    return columns([f"record {number}", ""], rows)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
