"""A kill at any moment of a prediction leaves all tables as they were, or the whole of what was to be written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

from elasticdl.sql.databases import Database, open_database
from elasticdl.sql.rows import Rows

from .predicting import everything, fill
from .servers import Server

Tables = dict[str, set[tuple[Any, ...]]]


def all_tables(url: str) -> Tables:
    database = open_database(url)
    try:
        return {name: everything(database, name) for name in database.tables()}
    finally:
        database.close()


def test_tables_are_as_before_or_whole_when_the_process_is_killed(url: str) -> None:
    database = open_database(url)
    fill(database, key=database.dialect == "postgres")
    fill(database, "result")
    database.close()
    program = [sys.executable, str(Path(__file__).with_name("killing.py"))]
    tables = ["fresh", "result", "people"]
    command = [*program, url, "SELECT id, name, age FROM people", *tables]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as process:
        for table in tables:
            check_kills(url, table, process)
    assert process.returncode == 0


def check_kills(url: str, table: str, process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdin is not None
    before = all_tables(url)
    after = {**before, table: {(*row, 0.5) for row in before["people"]}}
    untouched = 0
    print(file=process.stdin, flush=True)  # DuckDB's file is one process's at a time
    while (told := process.stdout.readline().strip()) == "killed":
        found = all_tables(url)
        assert found in (before, after)
        untouched += found == before
        if found == after:  # killed after its end; what comes next starts from here
            before = after
        print(file=process.stdin, flush=True)
    assert told == "done"
    assert all_tables(url) == after
    assert untouched >= 3


def test_what_a_kill_left_is_removed_when_mysql_is_written_to_again(
    mysql: Database, mariadb_server: Server
) -> None:
    other = open_database(mariadb_server.url())
    other.run("SELECT GET_LOCK('__elasticdl_00000000000000aa', 0)")
    mysql.run(
        "CREATE TABLE __elasticdl_00000000000000aa_old (a INTEGER)"
    )  # of somebody who is at work
    mysql.run("CREATE TABLE __elasticdl_00000000000000bb (a INTEGER)")
    mysql.run("CREATE TABLE __elasticdl_00000000000000bb_old (a INTEGER)")
    fill(mysql)
    assert mysql.tables() == ["people"]
    mysql.write_table(["scores"], Rows.of(pa.table({"a": [1]})), replace=False)
    rows = mysql.run("SHOW TABLES")
    assert rows is not None
    left = rows.to_table().column(0).to_pylist()
    assert set(left) == {"__elasticdl_00000000000000aa_old", "people", "scores"}
    other.close()
