"""Input and expected pairs, read from the files of `fixtures`, and statements as such a file writes them.

A pair is `# dialect` (several with commas; duckdb when none), the text, a line `->`, and a line for each statement or
the error. Pairs are separated by lines of `=====`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elasticdl.errors import StatementError
from elasticdl.sql.parse import parse
from elasticdl.sql.point import point
from elasticdl.sql.statements import DryRun, Statement, Word
from elasticdl.tabular.expression import Call, ColumnGroup

FIXTURES = Path(__file__).parent / "fixtures"
PLACES = ("text", "span", "select_span", "attribute_spans")


@dataclass(frozen=True)
class Pair:
    dialect: str
    text: str
    expected: str


def pairs(name: str) -> Iterator[Pair]:
    for block in (FIXTURES / f"{name}.txt").read_text().split("\n=====\n"):
        first, _, rest = block.partition("\n")
        dialects, body = (first[2:], rest) if first.startswith("# ") else ("duckdb", block)
        text, _, expected = body.partition("\n->\n")
        for dialect in dialects.split(", "):
            yield Pair(dialect, text, expected.strip())


def outcome(text: str, dialect: str) -> str:
    """What became of a text, in the fixtures' words."""
    try:
        return "\n".join(told(statement) for statement in parse(text, dialect))
    except StatementError as error:
        assert error.start is not None and error.end is not None
        return f"{error.message}\n{point(text, error.start, error.end)}"


def told(statement: Statement) -> str:
    if isinstance(statement, DryRun):
        return f"DryRun of {told(statement.inner)}"
    fields = {name: value for name, value in vars(statement).items() if name not in PLACES}
    if not fields:
        return f"{type(statement).__name__} {statement.text!r}"
    shown = [
        f"{name}={_told(value)}"
        for name, value in fields.items()
        if value not in (None, (), {}, False)
    ]
    return " ".join([type(statement).__name__, *shown])


def _told(value: Any) -> str:
    if isinstance(value, Word):
        return repr(value.value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_told(word)}" for key, word in value.items()) + "}"
    if isinstance(value, ColumnGroup):
        return _told(value.columns) + (f" FOR {value.target}" if value.target else "")
    if isinstance(value, Call):
        return f"{value.function or ''}{_told(value.arguments)}"
    if isinstance(value, tuple):
        return "(" + ", ".join(_told(item) for item in value) + ")"
    return repr(value)
