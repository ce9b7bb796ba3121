"""Errors that know no text, at the place in the statement that they speak of."""

from __future__ import annotations

import re

from elasticdl.errors import StatementError, UserError
from elasticdl.sql.statements import WithSelect, Word

__all__ = ["at", "in_attributes", "in_select"]

_QUOTED = re.compile(r"""'([^'\n]+)'|"([^"\n]+)"|`([^`\n]+)`""")


def at(word: Word, error: Exception) -> StatementError:
    """An error about a word."""
    return StatementError(str(error), word.span.start, word.span.end)


def in_select(statement: WithSelect, error: UserError) -> StatementError:
    """What a database said of a SELECT: at the first name that it quotes, else at all of it."""
    if isinstance(error, StatementError):
        return error
    begin = statement.select_span.start
    for match in _QUOTED.finditer(str(error)):
        name = next(group for group in match.groups() if group)
        for part in (name, name.rpartition(".")[2]):
            word = rf"(?<!\w){re.escape(part)}(?!\w)"
            if part and (found := re.search(word, statement.select, re.IGNORECASE)):
                return StatementError(str(error), begin + found.start(), begin + found.end())
    return StatementError(str(error), begin, statement.select_span.end)


def in_attributes(statement: WithSelect, error: UserError) -> UserError:
    """An error that speaks of an attribute, there; others as they are."""
    if isinstance(error, StatementError):
        return error
    for key, span in statement.attribute_spans.items():
        name = key.rpartition(".")[2]
        if f"'{name}'" in str(error) or str(error).startswith(f"Invalid {name} "):
            return StatementError(str(error), span.start, span.end)
    return error
