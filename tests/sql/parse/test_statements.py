"""Texts and what they mean, pair by pair; and where their words are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pairs import Pair, outcome, pairs

from elasticdl.errors import InvalidValue
from elasticdl.sql.parse import needs_more, parse
from elasticdl.sql.statements import DryRun, Plain, Train, WithSelect, Word
from elasticdl.tabular.expression import Call, ColumnGroup


@pytest.mark.parametrize("file", ["ours", "plain", "errors"])
def test_a_text_means_what_its_fixture_says(file: str) -> None:
    for pair in pairs(file):
        assert outcome(pair.text, pair.dialect) == pair.expected, pair.text


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite", "postgres", "mysql"])
def test_spans_lead_to_the_words_when_statements_stand_one_after_the_other(dialect: str) -> None:
    chosen = [pair.text.rstrip(";") for pair in pairs("ours") if pair.dialect == dialect]
    text = "-- begin\n" + "\n;\n".join(chosen)
    statements = parse(text, dialect)
    assert len(statements) > 1
    for statement in statements:
        assert text[statement.span.start : statement.span.end] == statement.text
        inner = statement.inner if isinstance(statement, DryRun) else statement
        if isinstance(inner, WithSelect):
            place = inner.select_span
            assert text[place.start : place.end] == inner.select
            assert list(inner.attributes) == list(inner.attribute_spans)
            for key, span in inner.attribute_spans.items():
                assert text[span.start : span.end].strip('"').lower() == key
        for word in _words(vars(inner)):
            written = text[word.span.start : word.span.end]
            if isinstance(word.value, str) and written[0] not in "'\"`[":
                assert written == word.value


def _words(value: Any) -> Iterator[Word]:
    if isinstance(value, Word):
        yield value
    elif isinstance(value, dict | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _words(item)


def test_spans_of_column_functions_lead_to_them() -> None:
    text = "SELECT * FROM t TRAIN m COLUMN a, EMBEDDING(CATEGORY_ID(role, 10), 8) FOR dnn INTO x"
    (statement,) = parse(text)
    assert isinstance(statement, Train)
    (group,) = statement.columns
    assert isinstance(group, ColumnGroup)
    inner = group.columns[1].arguments[0]
    assert isinstance(inner, Call)
    calls = [*group.columns, inner]
    assert [text[call.span.start : call.span.end] for call in calls] == [
        "a",
        "EMBEDDING(CATEGORY_ID(role, 10), 8)",
        "CATEGORY_ID(role, 10)",
    ]


def test_a_statement_of_another_kind_does_not_change_what_its_neighbours_mean() -> None:
    singles = [pair for pair in (*pairs("ours"), *pairs("plain")) if pair.dialect == "duckdb"]
    finished = [pair for pair in singles if "(1;" not in pair.text]
    text = "\n;".join(pair.text for pair in finished)
    expected = "\n".join(pair.expected for pair in finished if pair.expected)
    assert outcome(text, "duckdb") == expected


def test_plain_sql_comes_verbatim_when_it_is_long() -> None:
    rows = ",\n".join(f"({i}, 'it''s; {i}', \"q\")" for i in range(100_000))
    insert = f"INSERT INTO t VALUES {rows}"
    first, second = parse(f"{insert} ;\nSELECT 2")
    assert (first, second.text) == (Plain(insert, first.span), "SELECT 2")


@pytest.mark.parametrize("bracket", ["(", "[", "SELECT (", "SELECT * FROM t TRAIN m WITH a=["])
def test_deep_nesting_is_read_or_refused_without_an_error_of_python(bracket: str) -> None:
    deep = bracket + bracket[-1] * 200_000
    assert outcome(deep, "duckdb")


def test_an_unknown_dialect_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidValue, match=r"'postgress'.*Did you mean 'postgres'"):
        parse("SELECT 1", "postgress")


FINISHED = [
    "",
    "  \n",
    "-- c",
    "SELECT 1;",
    "SELECT 1; -- c",
    ";",
    "SELECT 1; /* c */ ",
    "SELECT ';';",
]
UNFINISHED = [
    "SELECT 1",
    "SELECT 1; SELECT",
    "SELECT ';",
    'SELECT "a;',
    "SELECT 1 /* ;",
    "SELECT (1;",
    "SELECT 1 -- ;",
    "SELECT * FROM t TRAIN m",
    "SELECT * FROM t TRAIN m WITH a='x;",
    "CREATE MODEL m OPTIONS(model_type='x') AS SELECT 1",
    "SELECT $$ ;",
    "SHOW MODELS",
]


@pytest.mark.parametrize("text", FINISHED)
def test_a_prompt_runs_what_is_finished(text: str) -> None:
    assert not needs_more(text)


@pytest.mark.parametrize("text", UNFINISHED)
def test_a_prompt_asks_for_more_until_the_semicolon(text: str) -> None:
    assert needs_more(text)


def test_a_prompt_asks_for_more_by_the_dialect() -> None:
    assert needs_more(r"SELECT 'a\';", "mysql") and not needs_more(r"SELECT 'a\';", "sqlite")
    assert needs_more("SELECT 1 # ;", "mysql") and not needs_more("SELECT 1 # ;", "postgres")
    trigger = "CREATE TRIGGER a AFTER INSERT ON t BEGIN SELECT 1;"
    assert needs_more(trigger, "sqlite") and not needs_more(f"{trigger} END;", "sqlite")


@pytest.mark.parametrize("pair", list(pairs("errors")), ids=lambda pair: pair.text[:40])
def test_a_prompt_runs_what_is_wrong_when_it_is_finished(pair: Pair) -> None:
    is_open = "is never closed" in pair.expected or "is not closed" in pair.expected
    assert needs_more(f"{pair.text}\n;", pair.dialect) == (
        is_open and "before TRAIN" not in pair.expected
    )
