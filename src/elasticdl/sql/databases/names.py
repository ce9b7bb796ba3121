"""Names in SQL: quoted by the dialect's rules, so that no name is ever read as SQL."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from elasticdl.errors import InvalidValue
from elasticdl.sql.statements import Word

__all__ = ["folded", "literal", "name_key", "names_meant", "quote", "quoted", "unquoted"]

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


def unquoted(dialect: str, name: str) -> str:
    """What a name means that was written without quotes: PostgreSQL makes its letters small, the English ones only.

    >>> unquoted("postgres", "Sales")
    'sales'
    >>> unquoted("mysql", "Sales")
    'Sales'
    """
    if dialect != "postgres":
        return name
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)


def names_meant(dialect: str, words: Iterable[Word]) -> list[str]:
    """The names that were written in one of our clauses: those in quotes to the letter."""
    return [str(word) if word.quoted else unquoted(dialect, str(word)) for word in words]


def name_key(dialect: str, name: str) -> str:
    """The same for two names of columns that cannot both be in a table: only PostgreSQL tells large letters."""
    return name if dialect == "postgres" else name.lower()


def folded(dialect: str, parts: Sequence[str]) -> list[str]:
    """Names that we make ourselves, so that nobody has to quote them: PostgreSQL's plain words in small letters.

    >>> folded("postgres", ["Sales", "My Table"])
    ['sales', 'My Table']
    """
    return [
        unquoted(dialect, part) if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_$]*", part) else part
        for part in parts
    ]
