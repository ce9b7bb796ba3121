"""`elasticdl.sql(...)` and what it returns."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import elasticdl
from elasticdl.errors import InvalidValue, StatementError, Stopped, UnknownName
from elasticdl.sql.api import SqlResult, collect
from elasticdl.sql.environment import database_address, models_address

from .fake_session import FakeSession


def run(text: str) -> SqlResult:
    with FakeSession() as session:
        return collect(session.run(text))


def test_rows_are_arrow_pandas_and_dicts() -> None:
    result = run("SELECT 1 AS a, 'x' AS b UNION ALL SELECT 2, NULL ORDER BY a")
    assert result.table is not None and result.table.column_names == ["a", "b"]
    assert result.to_pandas()["a"].tolist() == [1, 2]
    assert list(result) == [{"a": 1, "b": "x"}, {"a": 2, "b": None}]
    assert len(result) == 2
    rows = result.outcomes[0].rows
    assert rows is not None and rows.to_table() == result.table


def test_a_result_is_that_of_the_last_training_and_the_table_of_the_last_rows() -> None:
    result = run("SELECT 1 AS a; SELECT * FROM t TRAIN m; SELECT 2 AS b; CREATE VIEW v AS SELECT 3")
    assert result.result is not None and result.result.command == "train"
    assert result.table == pa.table({"b": pa.array([2], pa.int32())})
    assert result.message == "Trained m, version 1.\nDone."
    assert [table is None for table in result.tables] == [False, True, False, True]


def test_it_shows_everything_in_order() -> None:
    result = run("SELECT 1 AS a; SELECT * FROM t TRAIN m; SELECT '<i>' AS b")
    assert str(result).splitlines() == ["a", "-", "1", "Trained m, version 1.", "b", "---", "<i>"]
    html = result._repr_html_()
    assert html.index("<th>a</th>") < html.index("Trained m") < html.index("<th>b</th>")
    assert "&lt;i&gt;" in html


def test_nothing_is_there_when_no_statement_returns_rows() -> None:
    result = run("CREATE VIEW v AS SELECT 1")
    assert (result.table, result.result, len(result), list(result), bool(result)) == (
        None,
        None,
        0,
        [],
        True,
    )
    with pytest.raises(InvalidValue, match="no rows"):
        result.to_pandas()


def test_the_package_is_a_function_and_a_package(capsys: pytest.CaptureFixture[str]) -> None:
    import elasticdl.sql.session

    result = elasticdl.sql("SELECT 6 * 7 AS answer")
    assert list(result) == [{"answer": 42}]
    assert elasticdl.sql.session.Session is not None  # type: ignore[attr-defined]
    assert list(inspect.signature(elasticdl.sql).parameters)[:4] == [
        "text",
        "db",
        "models",
        "model_zoo",
    ]
    assert capsys.readouterr() == ("", "")


def test_an_unknown_option_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'models'"):
        elasticdl.sql("SELECT 1", model="x")


def test_a_database_is_an_address_or_a_path(tmp_path: Path) -> None:
    elasticdl.sql("CREATE TABLE t AS SELECT 1 AS a", db=tmp_path / "x.duckdb")
    assert list(elasticdl.sql("FROM t", db=str(tmp_path / "x.duckdb"))) == [{"a": 1}]
    with pytest.raises(InvalidValue, match="give the address"):
        elasticdl.sql("SELECT 1", db=object())


def test_the_environment_says_where_when_nobody_else_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELASTICDL_DB", str(tmp_path / "x.duckdb"))
    monkeypatch.setenv("ELASTICDL_MODELS", str(tmp_path / "kept"))
    elasticdl.sql("CREATE TABLE t AS SELECT 1 AS a")
    assert list(elasticdl.sql("FROM t", db=tmp_path / "x.duckdb")) == [{"a": 1}]
    assert "t" not in str(elasticdl.sql("SHOW TABLES", db=":memory:"))
    assert (models_address(None), models_address("here")) == (str(tmp_path / "kept"), "here")
    monkeypatch.setenv("ELASTICDL_DB", "")
    assert (database_address(None), database_address("x.db")) == (None, "x.db")


def test_an_error_points_at_its_place() -> None:
    with pytest.raises(StatementError, match="LABLE"):
        elasticdl.sql("SELECT * FROM t TO TRAIN DNNClassifier LABLE y INTO m")


def test_a_training_that_is_cancelled_is_told_apart() -> None:
    text = "SELECT range AS a, 2 * range AS b FROM range(50) TO TRAIN regressor.Linear INTO m"
    with pytest.raises(Stopped, match="no version was written") as caught:
        elasticdl.sql(text, is_cancelled=lambda: True, log_level="ERROR")
    assert caught.value.exit_code == 130
    assert Stopped("", "preempted").exit_code == 143
    assert list(elasticdl.sql("SHOW MODELS")) == []


def test_the_package_is_light_until_it_is_called() -> None:
    look = "import sys, elasticdl; elasticdl.sql; print({'pyarrow', 'duckdb', 'grpc'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
