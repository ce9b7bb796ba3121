"""The flags that the commands of `elasticdl sql` share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from elasticdl.errors import UnknownName, near_match

__all__ = ["LEVELS", "chosen", "db_option", "level_option", "models_option", "zoo_option"]

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def db_option() -> Decorator:
    return click.option(
        "--db",
        metavar="URL",
        envvar="ELASTICDL_DB",
        help="The database: duckdb:///FILE, sqlite:///FILE, postgresql://..., mysql://...  "
        "[default: ELASTICDL_DB, else DuckDB in memory]",
    )


def models_option() -> Decorator:
    return click.option(
        "--models",
        metavar="TEXT",
        envvar="ELASTICDL_MODELS",
        default="models",
        help="Where trained models are kept: a directory or an address.  [default: ELASTICDL_MODELS, else models]",
    )


def zoo_option() -> Decorator:
    return click.option(
        "--model_zoo",
        metavar="TEXT",
        help="Directory or Git address of models beside the built-in.",
    )


def level_option() -> Decorator:
    return click.option(
        "--log_level",
        metavar=f"[{'|'.join(LEVELS)}]",
        default="INFO",
        help="How much to say: WARNING shows no progress, DEBUG whole tracebacks.  [default: INFO]",
    )


def chosen(name: str, value: str, choices: tuple[str, ...]) -> str:
    """One of the choices, or an error with the nearest."""
    for choice in choices:
        if choice.lower() == value.lower():
            return choice
    match = near_match(value, choices)
    advice = f"Did you mean {match!r}?" if match else f"Give one of {', '.join(choices)}."
    raise UnknownName(f"Invalid --{name} {value!r}. {advice}")
