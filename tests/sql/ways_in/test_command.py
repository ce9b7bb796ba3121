"""`elasticdl sql ...`, as it is typed."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow.parquet
import pytest

from elasticdl.cli.main import main

Typed = Callable[..., tuple[int, str, str]]


@pytest.fixture
def typed(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Typed:
    """Runs `elasticdl sql` in this process: its exit code, stdout and stderr."""
    for name in ("ELASTICDL_DB", "ELASTICDL_MODELS", "ELASTICDL_SQL_TOKEN"):
        monkeypatch.delenv(name, raising=False)

    def run(*args: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        code = main(["sql", *args])
        out, err = capfd.readouterr()
        return code, out, err

    return run


@pytest.fixture
def shop(tmp_path: Path) -> str:
    path = tmp_path / "shop.db"
    with duckdb.connect(str(path)) as connection:
        connection.sql(
            "CREATE TABLE item AS SELECT range AS id, 'n' || range AS name FROM range(100)"
        )
    return f"duckdb:///{path}"


def test_rows_are_a_table_with_the_first_forty(typed: Typed, shop: str) -> None:
    code, out, err = typed("SELECT * FROM item ORDER BY id", "--db", shop)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[:3] == ["id  name", "--  ----", " 0  n0"]
    assert lines[-2:] == ["39  n39", "... 60 more rows"]


def test_options_may_stand_before_and_after_the_statement(typed: Typed, shop: str) -> None:
    code, out, _ = typed(
        "--limit", "1", "SELECT * FROM item ORDER BY id", f"--db={shop}", "--format=csv"
    )
    assert (code, out) == (0, '"id","name"\n0,"n0"\n')


def test_the_environment_names_the_database(
    typed: Typed, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELASTICDL_DB", shop)
    assert typed("SELECT count(*) AS n FROM item")[1].split() == ["n", "---", "100"]


def test_statements_come_from_a_file_or_a_pipe(typed: Typed, tmp_path: Path) -> None:
    text = "CREATE TABLE t AS SELECT 5 AS x;\nSELECT x + 1 AS y FROM t; -- the end"
    (tmp_path / "text.sql").write_text(f"\ufeff{text}", encoding="utf-8")
    by_file = typed("-f", "text.sql")
    assert by_file[0] == 0 and by_file[1].splitlines()[-1] == "6"
    assert typed(stdin=text) == typed("-f", "-", stdin=text) == by_file
    assert typed("-f", "nope.sql")[0::2] == (
        2,
        "Error: Cannot read --file 'nope.sql': No such file or directory.\n",
    )
    assert typed("SELECT 1", "-f", "text.sql")[0] == 2


def test_a_pipe_gets_all_rows_and_nothing_else(typed: Typed, shop: str) -> None:
    text = "CREATE TABLE t AS SELECT 1; SELECT id, [id, NULL] AS pair, NULL AS none FROM item ORDER BY id"
    code, out, err = typed(text, "--db", shop, "--format", "json")
    rows = json.loads(out)
    assert (code, len(rows), rows[99]) == (0, 100, {"id": 99, "pair": [99, None], "none": None})
    assert err
    assert json.loads(typed("SELECT 1 AS a WHERE false", "--format=json")[1]) == []


def test_numbers_that_json_lacks_are_null(typed: Typed) -> None:
    text = "SELECT 'NaN'::DOUBLE AS a, ['inf'::DOUBLE] AS b, DATE '2024-02-29' AS c, '\\x01'::BLOB AS d"
    assert json.loads(typed(text, "--format=json")[1]) == [
        {"a": None, "b": [None], "c": "2024-02-29", "d": "01"}
    ]


def test_csv_has_lists_as_text(typed: Typed) -> None:
    out = typed(
        "SELECT [1, 2] AS list, {'k': NULL} AS struct, uuid() IS NOT NULL AS yes", "--format=csv"
    )[1]
    assert out == '"list","struct","yes"\n"[1, 2]","{""k"": null}",true\n'


def test_an_output_is_written_by_its_name_and_not_over_another(typed: Typed, shop: str) -> None:
    ask = ("SELECT * FROM item", "--db", shop, "--output", "new/items.parquet")
    assert typed(*ask) == (0, "Wrote 100 rows to new/items.parquet.\n", "")
    assert pyarrow.parquet.read_table("new/items.parquet").num_rows == 100
    assert [path.name for path in Path("new").iterdir()] == ["items.parquet"]
    code, _, err = typed(*ask)
    assert code == 2 and "--overwrite" in err
    assert typed(*ask, "--overwrite", "--limit=7")[1] == "Wrote 7 rows to new/items.parquet.\n"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["SELECT 1", "--output", "rows.txt"], "does not say how to write the rows"),
        (["SELECT 1", "--format", "parquet"], "give an --output"),
        (["SELECT 1", "--output=x.csv", "--format=table"], "for the screen"),
        (["SELECT 1", "--format", "jsn"], "Did you mean 'json'?"),
        (["SELECT 1", "--limit", "-3"], "--limit"),
        (["SELECT 1", "--log_level", "LOUD"], "--log_level"),
        (["SELECT", "1"], "Put quotes around the whole of it"),
        (["serv"], "Did you mean 'serve'?"),
        (["--db", "x", "serve"], "come after it"),
        (["SELECT 1", "--nope"], "--nope"),
        (["SELECT * FROM t TO TARIN m LABEL y INTO z"], "TARIN"),
        (["SELECT 1; SELECT * FROM nowhere"], "nowhere"),
        (["SELECT 1", "--db", "hive://x"], "hive"),
        (["serve", "--host", "0.0.0.0"], "--token"),
        (["serve", "--port", "x"], "port"),
        (["serve", "--tls_cert", "x"], "--tls_key"),
        (
            ["serve", "--port", "0", "--tls_cert", "nope", "--tls_key", "nope"],
            "Cannot read --tls_key",
        ),
    ],
)
def test_what_is_wrong_ends_with_2_and_no_traceback(
    typed: Typed, args: list[str], words: str
) -> None:
    code, _, err = typed(*args)
    assert code == 2
    assert words in err and "Traceback" not in err


def test_nothing_is_run_when_the_output_could_not_be_written(typed: Typed, tmp_path: Path) -> None:
    db = f"duckdb:///{tmp_path / 'new.db'}"
    (tmp_path / "there.csv").touch()
    text = "CREATE TABLE t AS SELECT 1; SELECT * FROM t"
    assert typed(text, "--db", db, "--output", "there.csv")[0] == 2
    assert not (tmp_path / "new.db").exists()


def test_nothing_is_run_when_several_statements_return_rows_for_a_file(
    typed: Typed, tmp_path: Path
) -> None:
    db = f"duckdb:///{tmp_path / 'new.db'}"
    text = "CREATE TABLE t AS SELECT 1 AS a; SELECT 1 AS a; -- more\nWITH b AS (SELECT 2) FROM b"
    code, _, err = typed(text, "--db", db, "--output=x.csv")
    assert code == 2 and "2 return rows: 'SELECT 1 AS a'" in err and "Nothing was run" in err
    assert not Path("x.csv").exists()
    code, out, _ = typed("CREATE TABLE t AS SELECT 1 AS a; FROM t", "--db", db, "--output=x.csv")
    assert (code, out.splitlines()[-1]) == (0, "Wrote 1 row to x.csv.")
    assert Path("x.csv").read_text() == '"a"\n1\n'
