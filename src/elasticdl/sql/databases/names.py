"""Names in SQL: quoted by the dialect's rules, so that no name is ever read as SQL."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from elasticdl.errors import InvalidValue

__all__ = ["folded", "literal", "quote", "quoted"]

_LONGEST_POSTGRES = 63
"""In bytes. PostgreSQL cuts a longer name without a word."""


def quote(dialect: str, name: str) -> str:
    """One name as an identifier.

    >>> quote("postgres", 'a "b"')
    '"a ""b""\"'
    >>> quote("mysql", "a`b")
    '`a``b`'

    Raises:
      InvalidValue: no database could have it.
    """
    if not name or "\0" in name:
        raise InvalidValue(
            f"{name!r} is no name of a table or column: give one with at least one character."
        )
    if dialect == "postgres" and len(name.encode()) > _LONGEST_POSTGRES:
        raise InvalidValue(f"{name!r} is too long for PostgreSQL: give a name of at most 63 bytes.")
    mark = "`" if dialect == "mysql" else '"'
    return mark + name.replace(mark, mark * 2) + mark


def quoted(dialect: str, parts: Iterable[str]) -> str:
    """A name of several parts, from the outer to the inner."""
    return ".".join(quote(dialect, part) for part in parts)


def literal(text: str) -> str:
    """A string of SQL, for the few statements that take no bound values; never for MySQL, where \\ escapes."""
    return "'" + text.replace("'", "''") + "'"


def folded(dialect: str, parts: Sequence[str]) -> list[str]:
    """Names as somebody meant them who wrote them without quotes: PostgreSQL's plain words are in small letters.

    >>> folded("postgres", ["Sales", "My Table"])
    ['sales', 'My Table']
    """
    if dialect != "postgres":
        return list(parts)
    return [
        part.lower() if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_$]*", part) else part for part in parts
    ]
