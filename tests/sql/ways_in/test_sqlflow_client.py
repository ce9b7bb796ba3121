"""SQLFlow's own client from PyPI, its notebook magic and its command, against our server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from elasticdl.sql.server_access import Access

from .conftest import CLIENT, Serve, SqlflowClient, client_environment
from .fake_session import FakeSession

ASK = """
import json, sys
import sqlflow
answer = sqlflow.Client().execute(sys.argv[1])
found = [] if answer is None else [answer.get(i) for i in range(answer.length())]
print(json.dumps([[rows.column_names(), list(rows.rows())] for rows in found], default=str))
"""

MAGIC = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "sqlflow.magic")
answer = shell.run_cell_magic("sqlflow", "", sys.argv[1])
print(answer.get(0).to_dataframe().to_csv(index=False))
print(answer._repr_html_()[:4])
"""

TYPES = """
SELECT 1 AS whole, 2.5::DOUBLE AS fraction, 0.25::FLOAT AS small, 'zwölf' AS text, true AS yes, NULL AS nothing,
    TIMESTAMP '2024-02-29 12:30:00.5' AS moment, DATE '2024-02-29' AS day, 1.10::DECIMAL(10, 2) AS price,
    '\\xAA'::BLOB AS bytes, [1, 2] AS list, 18446744073709551615::UBIGINT AS huge, sum(3)::HUGEINT AS total
"""


def test_every_kind_of_value_arrives(serve: Serve, sqlflow_client: SqlflowClient) -> None:
    done = sqlflow_client(serve(), "-c", ASK, TYPES)
    assert done.returncode == 0, done.stderr
    [[names, [row]]] = json.loads(done.stdout)
    assert dict(zip(names, row, strict=True)) == {
        "whole": 1,
        "fraction": 2.5,
        "small": 0.25,
        "text": "zwölf",
        "yes": True,
        "nothing": None,
        "moment": "2024-02-29 12:30:00.500000",
        "day": "2024-02-29 00:00:00",
        "price": 1.1,
        "bytes": str(b"\xaa"),
        "list": "[1, 2]",
        "huge": 2**64 - 1,
        "total": 3,
    }


def test_messages_and_several_row_sets_arrive_in_order(
    serve: Serve, sqlflow_client: SqlflowClient
) -> None:
    text = (
        "SELECT 1 AS a; SELECT * FROM t TRAIN m; SELECT 2 AS b, 3 AS c; SELECT 4 AS d WHERE false"
    )
    done = sqlflow_client(serve(), "-c", ASK, text)
    assert done.returncode == 0, done.stderr
    *said, rows = done.stdout.splitlines()
    assert said == [
        "The label is salary, the last selected column.",
        "epoch 1/2 done  loss 0.5000",
        "epoch 2/2 done  loss 0.2500",
        "Trained m, version 1.",
    ]
    assert json.loads(rows) == [[["a"], [[1]]], [["b", "c"], [[2, 3]]], [["d"], []]]


def test_an_empty_row_set_in_the_middle_does_not_break_the_client(
    serve: Serve, sqlflow_client: SqlflowClient
) -> None:
    done = sqlflow_client(serve(), "-c", ASK, "SELECT 1 AS a WHERE false; SELECT 2 AS b")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n\n") == ["No rows. Columns: a.", '[[["b"], [[2]]]]\n']


def test_statements_with_one_message_each_end_and_hide_no_rows(
    serve: Serve, sqlflow_client: SqlflowClient
) -> None:
    text = "CREATE VIEW v AS SELECT 5 AS x; CREATE VIEW w AS SELECT 6; NOTE SELECT * FROM v; DROP VIEW v"
    done = sqlflow_client(serve(), "-c", ASK, text)
    assert done.returncode == 0, done.stderr
    said = done.stdout.split()
    assert (said.count("Done."), said.count("Remark.")) == (3, 1)
    assert done.stdout.endswith('\n[[["x"], [[5]]]]\n')


def test_the_magic_shows_rows(serve: Serve, sqlflow_client: SqlflowClient) -> None:
    done = sqlflow_client(serve(), "-c", MAGIC, "SELECT 1 AS a, 'x' AS b")
    assert done.returncode == 0, done.stderr
    assert "a,b\n1,x\n" in done.stdout
    assert "<div" in done.stdout


def test_the_command_shows_rows(serve: Serve, sqlflow_client: SqlflowClient) -> None:
    done = sqlflow_client(
        serve(),
        "-c",
        "import sqlflow.__main__ as command; command.main()",
        "SELECT 41 + 1 AS answer",
    )
    assert done.returncode == 0, done.stderr
    assert "answer" in done.stdout and "42" in done.stdout


def test_the_environment_names_the_database_and_the_token(
    serve: Serve, sqlflow_client: SqlflowClient, tmp_path: Path
) -> None:
    db = str(tmp_path / "mine.db")
    server = serve(access=Access(token="s3cret", allow_any_db=True))
    done = sqlflow_client(
        server,
        "-c",
        ASK,
        "CREATE VIEW t AS SELECT 7 AS x; SELECT * FROM t",
        SQLFLOW_DATASOURCE=db,
        SQLFLOW_USER_TOKEN="s3cret",
    )
    assert done.stdout.splitlines()[-1] == '[[["x"], [[7]]]]', done.stderr
    refused = sqlflow_client(server, "-c", ASK, "SELECT 1", SQLFLOW_DATASOURCE=db)
    assert refused.returncode != 0
    assert "SQLFLOW_USER_TOKEN" in refused.stderr


def test_an_error_is_told_with_its_place(serve: Serve, sqlflow_client: SqlflowClient) -> None:
    done = sqlflow_client(serve(), "-c", ASK, "BREAK")
    assert done.returncode != 0
    assert "line 1, column 1" in done.stderr and "Unknown word." in done.stderr


def test_a_client_that_is_killed_does_not_hurt_the_next(
    serve: Serve, sqlflow_client: SqlflowClient
) -> None:
    assert CLIENT.is_dir()
    server = serve()
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", ASK, "HANG"], env=client_environment(server)
    ) as client:
        assert FakeSession.hanging.wait(30)
        client.kill()
    assert FakeSession.ended.wait(30)
    done = sqlflow_client(server, "-c", ASK, "SELECT 1 AS a")
    assert done.stdout == '[[["a"], [[1]]]]\n', done.stderr
