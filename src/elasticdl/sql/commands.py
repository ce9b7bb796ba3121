"""CREATE MODEL, and the statements about models that need no SELECT: SHOW, DESCRIBE, DROP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from elasticdl.errors import StatementError
from elasticdl.sql.clause import Parts, read_parts
from elasticdl.sql.lexer import Lexeme
from elasticdl.sql.reader import Reader
from elasticdl.sql.statements import (
    DescribeModel,
    DropModel,
    ShowModels,
    ShowTrain,
    Statement,
    Train,
    Word,
)
from elasticdl.tabular.expression import Span

__all__ = ["read_command", "read_create_model"]

_STOPS = ("OPTIONS", "TRANSFORM", "WITH", "COLUMN", "LABEL", "USING", "INTO")


def read_command(text: str, lexemes: Sequence[Lexeme], span: Span) -> Statement:
    """`SHOW MODELS`, `SHOW TRAIN m`, `DESCRIBE MODEL m` or `DROP MODEL m`."""
    reader = Reader(text, lexemes, ())
    verb, what = reader.take().word, reader.take().word
    written = text[span.start : span.end]
    statement: Statement
    if what == "MODELS":
        statement = ShowModels(written, span, _pattern(reader))
    elif verb == "DROP":
        if_exists = reader.skip("IF", "EXISTS")
        statement = DropModel(written, span, reader.name("the name of a model"), if_exists)
    else:
        kind = ShowTrain if what == "TRAIN" else DescribeModel
        statement = kind(written, span, reader.name("the name of a model"))
    reader.finish(f"{verb} {what}")
    return statement


def _pattern(reader: Reader) -> Word | None:
    if not reader.skip("LIKE"):
        return None
    if reader.peek().kind != "string":
        reader.fail(f"Expected a pattern such as 'sales%' after LIKE, got {reader.shown()}.")
    return reader.value("a pattern after LIKE")


def read_create_model(
    text: str, lexemes: Sequence[Lexeme], rows: Mapping[str, Any] | None
) -> Train:
    """`CREATE [OR REPLACE] MODEL [IF NOT EXISTS] m OPTIONS(...) AS SELECT ...`: a TRAIN in other words.

    Args:
      rows: `text`, `span`, `select` and `select_span` of the statement; None when no SELECT came.
    """
    reader = Reader(text, lexemes, _STOPS)
    reader.take()
    replaces = reader.skip("OR", "REPLACE")
    reader.take()
    at = reader.peek()
    keeps = reader.skip("IF", "NOT", "EXISTS")
    if replaces and keeps:
        reader.fail("OR REPLACE and IF NOT EXISTS exclude each other. Leave one of them out.", at)
    into = reader.name("the name of a model after CREATE MODEL")
    parts = read_parts(reader, "CREATE MODEL")
    if rows is None:
        reader.fail("CREATE MODEL has no rows to train on. Add AS and a SELECT.")
    model = _taken(parts, "model_type")
    if model is None:
        message = "CREATE MODEL does not say which model. Add OPTIONS(model_type='DNNClassifier')."
        reader.fail(message, reader.last)
    label = _only("label", parts.label, _taken(parts, "label"), _taken(parts, "input_label_cols"))
    return Train(
        **rows,
        attributes=parts.attributes,
        attribute_spans=parts.attribute_spans,
        model=model,
        into=into,
        columns=tuple(parts.columns),
        label=label,
        using=_only("model to go on from", parts.using, _taken(parts, "using")),
        if_exists="replace" if replaces else "keep" if keeps else "refuse",
    )


def _taken(parts: Parts, key: str) -> Word | None:
    """An option that is a name, out of the attributes; a list of one name is that name."""
    word = parts.attributes.pop(key, None)
    if word is None:
        return None
    del parts.attribute_spans[key]
    value = word.value
    if isinstance(value, tuple) and len(value) == 1:
        value = value[0]
    if not isinstance(value, str) or not value:
        raise StatementError(
            f"Expected one name for {key}, got {word.value!r}.", word.span.start, word.span.end
        )
    return Word(value, word.span)


def _only(what: str, *words: Word | None) -> Word | None:
    """The one that was given."""
    given = [word for word in words if word is not None]
    if len(given) > 1:
        span = given[1].span
        message = f"The {what} is given twice. Leave one of them out."
        raise StatementError(message, span.start, span.end)
    return given[0] if given else None
