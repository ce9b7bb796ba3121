"""From a SQL text to typed statements: the front of this room."""

from __future__ import annotations

from typing import Any

from elasticdl.errors import StatementError
from elasticdl.sql.clause import read_clause
from elasticdl.sql.commands import read_command, read_create_model
from elasticdl.sql.scan import Unfinished, dialect_of
from elasticdl.sql.split import Piece, split
from elasticdl.sql.statements import DryRun, Evaluate, Explain, Plain, Predict, Statement, Train
from elasticdl.tabular.expression import Span

__all__ = ["needs_more", "parse"]


def parse(text: str, dialect: str = "duckdb") -> list[Statement]:
    """The statements of a text, in their order.

    Args:
      dialect: of the database that will run them: duckdb, sqlite, postgres or mysql.

    Raises:
      StatementError: with the place in the text, when one of our own statements is wrong.

    >>> parse("SELECT 1; SELECT * FROM t TO TRAIN DNNClassifier LABEL y INTO m")[1].into.value
    'm'
    """
    return [_statement(text, piece) for piece in split(text, dialect_of(dialect))]


def needs_more(text: str, dialect: str = "duckdb") -> bool:
    """Whether a text that is being typed ends inside of a statement.

    >>> needs_more("SELECT 1"), needs_more("SELECT 1;"), needs_more("SELECT ';")
    (True, False, True)
    """
    closed = True
    try:
        for piece in split(text, dialect_of(dialect)):
            closed = piece.closed
    except Unfinished:
        return True
    except StatementError:
        return False
    return not closed


def _statement(text: str, piece: Piece) -> Statement:
    if piece.lexemes is None:
        return Plain(text[piece.span.start : piece.span.end], piece.span)
    if piece.explained is None:
        return _ours(text, piece, piece.span)
    start = piece.lexemes[0].start
    if piece.select and piece.select.start < start:
        start = piece.select.start
    inner = _ours(text, piece, Span(start, piece.span.end))
    _refuse_options(text, piece.explained)
    assert isinstance(inner, Train | Predict | Evaluate | Explain)
    return DryRun(text[piece.span.start : piece.span.end], piece.span, inner)


def _ours(text: str, piece: Piece, span: Span) -> Statement:
    assert piece.lexemes is not None
    rows: dict[str, Any] | None = None
    if piece.select:
        rows = {
            "text": text[span.start : span.end],
            "span": span,
            "select": text[piece.select.start : piece.select.end],
            "select_span": piece.select,
        }
    if piece.lexemes[0].word == "CREATE":
        return read_create_model(text, piece.lexemes, rows)
    if rows is None:
        return read_command(text, piece.lexemes, span)
    return read_clause(text, piece.lexemes, rows)


def _refuse_options(text: str, explained: Span) -> None:
    """EXPLAIN ANALYZE would run a statement, which a dry run does not."""
    written = text[explained.start : explained.end]
    if written.upper() != "EXPLAIN":
        raise StatementError(
            f"{' '.join(written.split())} is for plain SQL. Write EXPLAIN alone to see what the statement would do.",
            explained.start,
            explained.end,
        )
