"""Our clause after a SELECT: a verb, what it is about, and WITH, COLUMN, LABEL, USING, INTO in any order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from elasticdl.errors import StatementError, near_match, nearest
from elasticdl.sql.columns import column_group
from elasticdl.sql.lexer import Lexeme
from elasticdl.sql.reader import Reader
from elasticdl.sql.statements import Evaluate, Explain, Predict, Train, Word
from elasticdl.sql.words import CLAUSES, SQL_WORDS, VERBS
from elasticdl.tabular.expression import ColumnGroup, Span

__all__ = ["Parts", "read_clause", "read_parts"]

_TAKES: Mapping[str, Sequence[str]] = {
    "TRAIN": CLAUSES,
    "PREDICT": ("WITH", "USING"),
    "EVALUATE": ("WITH", "LABEL", "INTO"),
    "EXPLAIN": ("WITH", "LABEL", "USING", "INTO"),
    "CREATE MODEL": ("OPTIONS", "WITH", "COLUMN", "LABEL", "USING"),
}
_INSTEAD = {
    ("PREDICT", "INTO"): "Name the target after the verb: PREDICT table.column USING model.",
    ("PREDICT", "LABEL"): "The model knows what it predicts.",
    ("EVALUATE", "USING"): "Name the model after the verb: EVALUATE model.",
    ("CREATE MODEL", "INTO"): "Name the model after the verb: CREATE MODEL name.",
    ("CREATE MODEL", "TRANSFORM"): "Compute the columns in the SELECT, or use COLUMN.",
}


_KEY = re.compile(r"[^\W\d]\w*(?:\.\w+)*")


@dataclass
class Parts:
    """What the clauses said so far."""

    attributes: dict[str, Word] = field(default_factory=dict)
    attribute_spans: dict[str, Span] = field(default_factory=dict)
    columns: list[ColumnGroup] = field(default_factory=list)
    label: Word | None = None
    using: Word | None = None
    into: list[Word] = field(default_factory=list)


def read_clause(
    text: str, lexemes: Sequence[Lexeme], rows: Mapping[str, Any]
) -> Train | Predict | Evaluate | Explain:
    """The statement that a SELECT and a clause make.

    Args:
      rows: `text`, `span`, `select` and `select_span` of the statement.

    Raises:
      StatementError: at the place that is wrong.
    """
    reader = Reader(text, lexemes)
    reader.skip("TO")
    verb = reader.take()
    word = "EXPLAIN" if verb.word == "ANALYZE" else verb.word
    if word not in VERBS:
        reader.fail(f"Unknown {reader.shown(verb)} after a SELECT. {_meant(verb, VERBS[:4])}", verb)
    if word == "PREDICT":
        return _predict(reader, rows)
    model = reader.name(f"the name of a model after {verb.word}")
    parts = read_parts(reader, word)
    common = {**rows, "attributes": parts.attributes, "attribute_spans": parts.attribute_spans}
    if word == "TRAIN":
        if not parts.into:
            reader.fail(
                "TRAIN does not say what to call the trained model. Add INTO and a name.",
                reader.last,
            )
        common |= {"columns": tuple(parts.columns), "label": parts.label, "using": parts.using}
        return Train(**common, model=model, into=parts.into[0])
    common |= {"using": model, "label": parts.label, "into": tuple(parts.into)}
    return Evaluate(**common) if word == "EVALUATE" else Explain(**common, explainer=parts.using)


def _predict(reader: Reader, rows: Mapping[str, Any]) -> Predict:
    """`PREDICT [[db.]table.column] USING m`, or `PREDICT m` when no USING comes."""
    target: list[Word] = []
    model = None
    if reader.has("USING"):
        if not reader.is_at_stop:
            target = reader.path("a table and its column after PREDICT", most=4)
    elif not (reader.is_at_stop or reader.is_over):
        model = reader.name("the name of a model after PREDICT")
        if reader.peek().value[:1] == ".":
            reader.fail("PREDICT does not say by which model. Add USING and its name.", reader.last)
    parts = read_parts(reader, "PREDICT")
    using = parts.using or model
    if using is None:
        reader.fail("PREDICT does not say by which model. Add USING and its name.", reader.last)
    if len(target) == 1:
        word, span = target[0].value, target[0].span
        raise StatementError(
            f"PREDICT writes to a column of a table, got {word!r} alone. Write PREDICT table.column USING model, or "
            "PREDICT USING model to have the rows back.",
            span.start,
            span.end,
        )
    return Predict(
        **rows,
        attributes=parts.attributes,
        attribute_spans=parts.attribute_spans,
        using=using,
        target=tuple(target),
    )


def read_parts(reader: Reader, verb: str) -> Parts:
    """The clauses up to the end, in any order, each once; COLUMN may come again."""
    parts, seen = Parts(), set[str]()
    while not reader.is_over:
        word = reader.peek().word
        if not reader.is_at_stop or word not in _TAKES[verb]:
            _refuse(reader, verb, seen)
        if word in seen and word != "COLUMN":
            reader.fail(f"{word} is given twice. Leave one of them out.")
        seen.add(word)
        reader.take()
        _read_part(reader, word, verb, parts)
    return parts


def _read_part(reader: Reader, word: str, verb: str, parts: Parts) -> None:
    if word == "OPTIONS":
        opening = reader.peek()
        if not reader.skip("("):
            reader.fail(f"Expected ( after OPTIONS, got {reader.shown()}.")
        while not reader.skip(")"):
            _read_attribute(reader, word, parts)
            reader.separator(")", opening)
    elif word == "WITH":
        _read_attribute(reader, word, parts)
        while reader.skip(",") and not (reader.is_over or reader.is_at_stop):
            _read_attribute(reader, word, parts)
    elif word == "COLUMN":
        parts.columns.append(column_group(reader))
    elif word == "LABEL":
        parts.label = reader.column("a column after LABEL")
        if reader.peek().kind == ",":
            reader.fail("LABEL takes one column.")
    elif word == "USING":
        parts.using = reader.name("a name after USING")
    elif verb == "TRAIN":
        parts.into = [reader.name("a name for the model after INTO")]
    else:
        parts.into = reader.path("a table after INTO", most=3)


def _read_attribute(reader: Reader, clause: str, parts: Parts) -> None:
    """`key=value`."""
    key = reader.peek()
    if reader.is_at_stop or reader.is_over:
        reader.fail(
            f"{clause} has no attributes. Add some, such as train.epoch=3, or leave it out."
        )
    if key.kind not in ("run", "string") or not _KEY.fullmatch(key.value):
        reader.fail(
            f"Expected an attribute after {clause}, such as train.epoch=3, got {reader.shown()}."
        )
    if reader.peek(1).kind != "=":
        if near_match(key.word, CLAUSES, 0.7):
            reader.fail(f"Unknown {reader.shown()}. {_meant(key, CLAUSES)}")
        reader.fail(f"Expected = and a value after {reader.shown()}.", reader.peek(1))
    name = key.value.lower()
    if name in parts.attributes:
        reader.fail(f"The attribute {name} is given twice. Leave one of them out.")
    reader.take()
    reader.take()
    parts.attributes[name] = reader.value(f"a value for {name}")
    parts.attribute_spans[name] = Span(key.start, key.end)


def _refuse(reader: Reader, verb: str, seen: set[str]) -> NoReturn:
    """Say what is wrong with a word that begins none of the verb's clauses."""
    lexeme, word = reader.peek(), reader.peek().word
    takes = _TAKES[verb]
    if (verb, word) in _INSTEAD:
        reader.fail(f"{verb} takes no {word}. {_INSTEAD[verb, word]}")
    if reader.peek(1).kind == "=":
        wanted = "a comma" if {"WITH", "OPTIONS"} & seen else "WITH"
        reader.fail(f"Expected {wanted} before the attribute {reader.shown()}.")
    if word in CLAUSES:
        reader.fail(f"{verb} takes no {word}. It takes {', '.join(takes)}.")
    if word in SQL_WORDS:
        reader.fail(f"{word} belongs to the SELECT. Write it before {verb}.")
    if near_match(word, takes):
        reader.fail(f"Unknown {reader.shown()} after {verb}. {_meant(lexeme, takes)}")
    reader.fail(f"Unexpected {reader.shown()}. After {verb} and a name come {', '.join(takes)}.")


def _meant(lexeme: Lexeme, known: Sequence[str]) -> str:
    return nearest(lexeme.word, known).replace("'", "")
