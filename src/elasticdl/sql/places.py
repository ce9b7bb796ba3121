"""Errors that know no text, at the place in the statement that they speak of."""

from __future__ import annotations

import re

from elasticdl.errors import StatementError, UserError
from elasticdl.sql.attributes import JOB_NAMES
from elasticdl.sql.statements import Statement, WithSelect, Word

__all__ = ["at", "in_attributes", "in_select", "in_statement"]

_QUOTED = re.compile(r"""'([^'\n]+)'|"([^"\n]+)"|`([^`\n]+)`""")


def at(word: Word, error: Exception) -> StatementError:
    """An error about a word."""
    return StatementError(str(error), word.span.start, word.span.end)


def in_select(statement: WithSelect, error: UserError) -> StatementError:
    """What is wrong with a SELECT: at the first name that the error quotes, else at all of it."""
    return _inside(statement.select, statement.select_span.start, error)


def in_statement(statement: Statement, error: UserError) -> StatementError:
    """What a database said of a statement of its own, likewise."""
    return _inside(statement.text, statement.span.start, error)


def _inside(text: str, begin: int, error: UserError) -> StatementError:
    if isinstance(error, StatementError):
        return error
    for match in _QUOTED.finditer(str(error)):
        name = next(group for group in match.groups() if group)
        for part in (name, name.rpartition(".")[2]):
            word = rf"(?<!\w){re.escape(part)}(?!\w)"
            if part and (found := re.search(word, text, re.IGNORECASE)):
                return StatementError(str(error), begin + found.start(), begin + found.end())
    return StatementError(str(error), begin, begin + len(text))


def in_attributes(statement: WithSelect, error: UserError) -> UserError:
    """An error that speaks of an attribute or of its value, there; others as they are."""
    if isinstance(error, StatementError):
        return error
    message = str(error)
    for key, word in statement.attributes.items():
        span, known = statement.attribute_spans[key], JOB_NAMES.get(key)
        if known and re.search(rf"(Invalid |--|')({known})\b", message):
            named = re.sub(rf"(?:--)?\b{known}\b", key, message)
            return StatementError(named, span.start, span.end)
        for name in {key, key.rpartition(".")[2]}:
            if f"'{name}'" in message or message.startswith(f"Invalid {name} "):
                return StatementError(message, span.start, span.end)
        if isinstance(word.value, str) and repr(word.value) in message:
            return StatementError(message, word.span.start, word.span.end)
    return error
