"""What a database says when it refuses, in ElasticDL's errors: its own words kept, its driver's left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from elasticdl.errors import (
    DataError,
    ElasticDLError,
    InvalidValue,
    NotFound,
    OutputExists,
    RunError,
    StatementError,
    UnknownName,
    nearest,
)

__all__ = ["GONE", "Trouble", "as_error", "columns_read", "is_of"]


@dataclass(frozen=True)
class Trouble:
    """A database's refusal.

    Attributes:
      kind: table, column, database, login, host, lost, locked, exists, file, data, statement, stopped or other.
      words: the database's own.
      name: of what is missing.
    """

    kind: str
    words: str
    name: str = ""


GONE = Trouble("lost", "it was closed while it was in use")


def is_of(error: BaseException, *packages: str) -> bool:
    """Whether an error was raised inside of a driver, which may stumble over a connection that was closed."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = trace.tb_frame.f_globals.get("__name__", "") if trace is not None else ""
    return module.partition(".")[0] in packages


def as_error(
    trouble: Trouble,
    shown: str,
    tables: Callable[[], Iterable[str]] = lambda: (),
    columns: Callable[[], Iterable[str]] = lambda: (),
) -> BaseException:
    """The error to raise. It has no cause: a driver's traceback helps nobody, and its words are in the message."""
    words = " ".join(trouble.words.split("\n")[0].split()).rstrip(".!")
    if trouble.kind == "stopped":
        return KeyboardInterrupt()
    if trouble.kind in ("table", "column"):
        known = _quietly(tables if trouble.kind == "table" else columns)
        hint = nearest(trouble.name.rpartition(".")[2], known)
        return UnknownName(
            f"There is no {trouble.kind} {trouble.name!r} in {shown}. {hint}{' ' if hint else ''}"
            f"The database says: {words}."
        )
    return _plain_error(trouble, words, shown)


def _plain_error(trouble: Trouble, words: str, shown: str) -> ElasticDLError:
    match trouble.kind:
        case "login":
            return InvalidValue(
                f"{shown} does not let us in: {words}. Check the user and the password of the address; in it, an @ "
                "is written %40, a : %3A and a / %2F."
            )
        case "database":
            return UnknownName(f"There is no such database at {shown}: {words}.")
        case "host":
            return RunError(
                f"{shown} cannot be reached: {words}. Check the host and port, and that the server runs."
            )
        case "lost":
            return RunError(
                f"The connection to {shown} was lost: {words}. Nothing was written; run the statement again."
            )
        case "locked":
            return RunError(f"{shown} is in use: {words}. Close it there, or try again later.")
        case "exists":
            return OutputExists(f"{shown}: {words}. Give another name.")
        case "file":
            return NotFound(f"{shown}: {words}.")
        case "data":
            return DataError(f"{shown} cannot go on with these values: {words}.")
        case "statement":
            return StatementError(f"{shown} refuses the statement: {trouble.words.strip()}")
    return RunError(f"{shown} failed: {words}.")


def _quietly(ask: Callable[[], Iterable[str]]) -> list[str]:
    """Names to choose from, if the database still answers."""
    try:
        return list(ask())
    except Exception:
        return []


def columns_read(sql: str, dialect: str, columns: Callable[[str], Iterable[str]]) -> list[str]:
    """The columns of all tables that a statement names."""
    from elasticdl.sql.databases.selection import read_selection

    return [
        name for parts in read_selection(sql, dialect).tables for name in columns(".".join(parts))
    ]
