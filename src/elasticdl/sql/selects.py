"""Texts that are to be a SELECT and nothing else: nothing in them may change a database."""

from __future__ import annotations

import re

from elasticdl.errors import InvalidValue
from elasticdl.sql.parse import parse
from elasticdl.sql.statements import Plain

__all__ = ["checked_select"]

_BEGIN = re.compile(r"[\s(]*(SELECT|WITH|FROM|VALUES|TABLE)\b", re.IGNORECASE)
_CHANGES = re.compile(
    r"\b(INSERT|UPDATE|DELETE|MERGE|CREATE|DROP|ALTER|TRUNCATE|COPY|ATTACH|INSTALL|CALL)\b",
    re.IGNORECASE,
)


def checked_select(text: str, dialect: str, what: str) -> str:
    """The one SELECT of a text, without its semicolon.

    Args:
      what: what the text is, for the message.

    Raises:
      InvalidValue: it is something else, or more than one statement.
    """
    found = parse(text, dialect)
    if len(found) != 1:
        raise InvalidValue(f"{what} must be one SELECT: it has {len(found)} statements.")
    (statement,) = found
    select = statement.text
    if not isinstance(statement, Plain) or not _BEGIN.match(select) or _changes(select, dialect):
        shown = " ".join(select.split())[:60]
        raise InvalidValue(f"{what} must be a SELECT, which changes nothing: it is {shown!r}.")
    return select


def _changes(select: str, dialect: str) -> bool:
    """Whether a part of a statement changes something, such as `WITH gone AS (DELETE ... RETURNING *)`."""
    if not _CHANGES.search(select):
        return False
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    try:
        tree = parse_one(select, dialect=dialect)
    except SqlglotError:
        return True  # what cannot be read is not trusted with such a word in it
    kinds = (exp.DML, exp.DDL, exp.Command, exp.Drop, exp.Alter)
    changing = [
        node for node in tree.find_all(*kinds) if not isinstance(node, exp.Query | exp.Subquery)
    ]
    return not isinstance(tree, exp.Query) or bool(changing)
