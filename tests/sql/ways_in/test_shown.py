"""Rows as texts, and what the TAB key offers."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from elasticdl.sql.prompt_words import offers
from elasticdl.sql.rows import Rows
from elasticdl.sql.shown import Shown, html_table, text_table


def shown(table: pa.Table, limit: int = 40) -> Shown:
    return Shown.of(Rows.of(table), limit)


def test_numbers_stand_at_the_right_and_nothing_is_null() -> None:
    table = pa.table({"name": ["Ann", None], "pay": [1.5, 20.25], "age": [7, None]})
    assert text_table(shown(table)).splitlines() == [
        "name    pay   age",
        "----  -----  ----",
        "Ann     1.5     7",
        "NULL  20.25  NULL",
    ]


def test_rows_beyond_the_limit_are_counted() -> None:
    table = pa.concat_tables([pa.table({"x": [1, 2]}), pa.table({"x": [3, 4, 5]})])
    assert text_table(shown(table, 3)).splitlines()[2:] == ["1", "2", "3", "... 2 more rows"]
    assert text_table(shown(table, 4)).splitlines()[-1] == "... 1 more row"
    assert shown(table, 5).more == 0
    assert text_table(shown(table, 0)).splitlines()[-1] == "... 5 more rows"


def test_no_rows_are_said_to_be_none() -> None:
    assert text_table(shown(pa.table({"abc": pa.array([], pa.int64())}))).endswith("\n(no rows)")


@pytest.mark.parametrize(
    ("values", "kind", "text"),
    [
        ([0.1], pa.float32(), "0.1"),
        ([b"\x01\xff"], None, "01 ff"),
        ([[1, None]], None, "[1, null]"),
        (["a\nb\x1b[31m"], None, r"a\nb\x1b[31m"),
        (["x" * 300], None, "x" * 200 + "..."),
        ([datetime.date(2024, 2, 29)], None, "2024-02-29"),
        ([1_700_000_000_123_456_789], pa.timestamp("ns"), "2023-11-14 22:13:20.123456"),
    ],
)
def test_a_value_is_a_line_that_a_terminal_takes(
    values: list[object], kind: pa.DataType | None, text: str
) -> None:
    assert shown(pa.table({"x": pa.array(values, kind)})).rows == [(text,)]


def test_html_is_escaped() -> None:
    made = html_table(shown(pa.table({"<b>": ["<script>", None]})))
    assert "<script>" not in made and "&lt;script&gt;" in made and "&lt;b&gt;" in made


class Known:
    def tables(self) -> Sequence[str]:
        return ["employee", "events"]

    def columns(self, table: str) -> Sequence[str]:
        return {"employee": ["name", "role", "salary"]}.get(table, [])

    def models(self) -> Sequence[str]:
        return ["pay", "churn"]


def offered(before: str) -> list[str]:
    return [offer.text for offer in offers(before, Known())]


@pytest.mark.parametrize(
    ("before", "first"),
    [
        ("SEL", ["SELECT"]),
        ("sel", ["select"]),
        ("SELECT * FROM ", ["employee", "events"]),
        ("SELECT * FROM emp", ["employee"]),
        ("SELECT employee.", ["employee.name", "employee.role", "employee.salary"]),
        ("SELECT * FROM employee WHERE sa", ["salary"]),
        ("SELECT * FROM employee TO TRAIN DNNR", ["DNNRegressor"]),
        ("SELECT * FROM employee TO TRAIN regressor.D", ["regressor.DNN"]),
        ("SELECT * FROM employee TO TRAIN DNNRegressor WITH hid", ["hidden_units="]),
        (
            "SELECT * FROM employee TO TRAIN DNNRegressor WITH hidden_units=[1], learn",
            ["learning_rate="],
        ),
        ("SELECT * FROM employee TO TRAIN DNNRegressor WITH train.ep", ["train.epoch="]),
        ("SELECT * FROM employee TO TRAIN DNNRegressor LABEL sal", ["salary"]),
        ("SELECT * FROM employee TO TRAIN DNNRegressor COLUMN BUC", ["BUCKET"]),
        ("SELECT * FROM employee TO PREDICT USING ", ["pay", "churn"]),
        ("DROP MODEL p", ["pay"]),
        ("SELECT 'FROM employee' AS x FROM ev", ["events"]),
    ],
)
def test_what_fits_is_offered_first(before: str, first: list[str]) -> None:
    assert offered(before)[: len(first)] == first


def test_files_are_offered_in_quotes(tmp_path: Path) -> None:
    for name in ("staff.csv", "notes.txt", ".hidden.csv"):
        (tmp_path / name).touch()
    (tmp_path / "stock").mkdir()
    (tmp_path / "stock" / "a.parquet").touch()
    assert offered("SELECT * FROM '") == ["staff.csv", "stock/"]
    assert offered("SELECT * FROM 'stock/") == ["a.parquet"]
    assert offered(f"SELECT * FROM '{tmp_path}/sta") == ["staff.csv"]
    assert offered("SELECT * FROM 'nowhere/") == []
