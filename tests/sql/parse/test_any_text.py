"""Texts that nobody would write: whatever comes is read or refused at a place, and SQL stays SQL."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator

import duckdb
import pytest
from pairs import pairs

from elasticdl.errors import StatementError
from elasticdl.sql.parse import needs_more, parse
from elasticdl.sql.point import point
from elasticdl.sql.scan import DIALECTS, scan
from elasticdl.sql.statements import Plain

TEXTS = [pair.text for file in ("ours", "plain", "errors") for pair in pairs(file)]
OURS = "TO TRAIN PREDICT EVALUATE EXPLAIN ANALYZE LABEL COLUMN USING INTO WITH m x y tarin train label to"
OTHERS = """FROM , . ( ) * = AS WHERE JOIN LEFT ON USING INTO WITH ORDER BY DESC LIMIT 1 'a' "b" [ ] SAMPLE % GROUP
 NOT AND IN LIKE UNION SELECT ALL DISTINCT IS NULL COLLATE CASE WHEN THEN END BETWEEN OVER"""


def read(text: str, dialect: str) -> None:
    """Nothing but a StatementError at a place in the text may come of it."""
    try:
        for statement in parse(text, dialect):
            assert text[statement.span.start : statement.span.end] == statement.text != ""
    except StatementError as error:
        assert error.start is not None and error.end is not None
        assert 0 <= error.start <= error.end <= len(text)
        assert point(text, error.start, error.end).startswith("line ")
    needs_more(text, dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_cut_texts_are_read_or_refused(dialect: str) -> None:
    rng = random.Random(1)
    for text in TEXTS:
        for _ in range(12):
            start, end = sorted((rng.randrange(len(text) + 1), rng.randrange(len(text) + 1)))
            read(text[start:], dialect)
            read(text[:end], dialect)
            read(text[:start] + text[end:], dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_shuffled_texts_are_read_or_refused(dialect: str) -> None:
    rng = random.Random(2)
    for text in TEXTS:
        words = text.split(" ")
        for _ in range(12):
            rng.shuffle(words)
            read(" ".join(words), dialect)
            read("SELECT * FROM t TO TRAIN m " + " ".join(words), dialect)
            read("CREATE MODEL m OPTIONS(" + " ".join(words), dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_signs_in_any_order_are_read_or_refused(dialect: str) -> None:
    rng = random.Random(3)
    pieces = [
        *"'\"`[](){};,.=-+/*#$@:%\\ \n\t\0é表٣1",
        "--",
        "/*",
        "*/",
        "$$",
        "TRAIN",
        "INTO",
        "COLUMN",
        "e'",
    ]
    beginnings = [
        "",
        "SELECT * FROM t TO TRAIN m ",
        "SELECT * FROM t PREDICT ",
        "SHOW MODELS ",
        "DROP MODEL ",
    ]
    for _ in range(1500):
        text = "".join(rng.choices(pieces, k=rng.randrange(25)))
        read(rng.choice(beginnings) + text, dialect)


def candidates(rng: random.Random) -> Iterator[str]:
    beginnings = [
        "SELECT",
        "SELECT a",
        "SELECT a FROM",
        "SELECT * FROM x",
        "SELECT a FROM x JOIN y",
        "FROM x",
    ]
    ours, others = OURS.split(), OTHERS.split()
    while True:
        words = [
            rng.choice(ours if rng.random() < 0.6 else others) for _ in range(rng.randint(1, 7))
        ]
        yield " ".join([rng.choice(beginnings), *words])


def is_duckdb(text: str) -> bool:
    try:
        return len(duckdb.extract_statements(text)) == 1
    except duckdb.Error:
        return False


def is_sqlite(text: str, connection: sqlite3.Connection) -> bool:
    try:
        connection.execute(f"EXPLAIN {text}")
    except sqlite3.Error as error:
        return "no such column" in str(error)
    return True


def test_what_a_database_takes_for_sql_stays_sql() -> None:
    """Random SELECTs out of our own words: some thousand of them are SQL, and none of those is ours."""
    connection = sqlite3.connect(":memory:")
    for table in ("x", "y", "m", "train", "label", "predict"):
        connection.execute(f"CREATE TABLE {table} (a, m, x, y, train, label, predict)")
    texts = candidates(random.Random(4))
    found = 0
    for _ in range(8000):
        text = next(texts)
        for dialect, is_sql in (
            ("duckdb", is_duckdb(text)),
            ("sqlite", is_sqlite(text, connection)),
        ):
            if is_sql:
                found += 1
                (statement,) = parse(text, dialect)
                assert isinstance(statement, Plain) and statement.text == text
    connection.close()
    assert found > 1000


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_scanner_finds_the_semicolons_that_sqlglot_finds(dialect: str) -> None:
    from sqlglot.dialects.dialect import Dialect
    from sqlglot.errors import TokenError
    from sqlglot.tokens import TokenType

    theirs = Dialect.get_or_raise(dialect)
    rng = random.Random(5)
    pieces = [
        "'a'",
        "'a;b'",
        "'it''s;'",
        '"c;d"',
        "--e;\n",
        "/*f;*/",
        ";",
        " ",
        "1",
        "x",
        "(",
        ")",
        ",",
        "\n",
        "-",
        "/",
    ]
    compared = 0
    for _ in range(2000):
        text = "SELECT " + " ".join(rng.choices(pieces, k=rng.randrange(1, 12)))
        try:
            expected = [
                t.start for t in theirs.tokenize(text) if t.token_type == TokenType.SEMICOLON
            ]
        except TokenError:
            continue
        compared += 1
        for coarse in (False, True):
            tokens = scan(text, 0, DIALECTS[dialect], coarse=coarse)
            assert [token.start for token in tokens if token.kind == ";"] == expected, text
    assert compared > 1000
