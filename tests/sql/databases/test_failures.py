"""What goes wrong, in words that help: names, passwords, servers that are not there or go away."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from elasticdl.errors import (
    DataError,
    ElasticDLError,
    InvalidValue,
    OutputExists,
    RunError,
    StatementError,
    UnknownName,
)
from elasticdl.sql.databases import Database, open_database
from elasticdl.sql.databases.mysql_swap import BySwap
from elasticdl.sql.databases.target import TableTarget

from .predicting import everything, fill, predict, predictions, rows_of
from .servers import Server, start_mariadb, start_postgres

SERVERS = ["postgres_server", "mariadb_server"]


def test_a_missing_table_is_told_with_the_nearest(database: Database) -> None:
    fill(database)
    with pytest.raises(
        UnknownName, match=r"no table '.*poeple' in .*Did you mean 'people'\? The database says:"
    ):
        database.select("SELECT * FROM poeple")
    with pytest.raises(UnknownName, match="poeple"):
        database.run("DELETE FROM poeple")


def test_a_missing_column_is_told_with_the_nearest(database: Database) -> None:
    fill(database)
    with pytest.raises(
        UnknownName, match=r"no column 'nmae'.*Did you mean 'name'\? The database says:"
    ):
        database.select("SELECT nmae FROM people")


def test_a_statement_is_refused_in_the_databases_words(database: Database) -> None:
    with pytest.raises(StatementError, match="SELEC"):
        database.run("SELEC 1")
    assert rows_of(database, "SELECT 1 AS one") == [(1,)]


def test_an_existing_table_is_told_when_it_is_made_again(database: Database) -> None:
    fill(database)
    with pytest.raises(OutputExists, match="people"):
        database.run("CREATE TABLE people (a INTEGER)")


def test_values_are_told_when_they_break_a_rule(database: Database) -> None:
    fill(database, key=True)
    with pytest.raises(DataError, match=r"(?i)duplicate|unique"):
        database.run("INSERT INTO people VALUES (1, 'x', 1)")


def test_a_value_is_told_when_it_fails_in_the_middle_of_the_rows(database: Database) -> None:
    if database.dialect in ("sqlite", "mysql"):
        pytest.skip("reads a text as 0 rather than fail")
    series = "range(300000)" if database.dialect == "duckdb" else "generate_series(0, 299999)"
    rows = database.select(
        f"SELECT CAST(CASE WHEN i = 250000 THEN 'x' ELSE '1' END AS INTEGER) FROM {series} AS t(i)"
    )
    with pytest.raises(DataError, match=r"['\"]x['\"]"), rows:
        for _ in rows:
            pass
    assert rows_of(database, "SELECT 1 AS one") == [(1,)]


def test_errors_show_nothing_of_the_driver(database: Database) -> None:
    with pytest.raises(ElasticDLError) as caught:
        database.select("SELECT * FROM missing")
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("name", SERVERS)
def test_a_wrong_password_is_told_without_it(request: pytest.FixtureRequest, name: str) -> None:
    server: Server = request.getfixturevalue(name)
    with pytest.raises(InvalidValue, match="does not let us in") as caught:
        open_database(server.url(password="swordfish"))
    assert "swordfish" not in str(caught.value)


@pytest.mark.parametrize("name", SERVERS)
def test_a_missing_database_is_told(request: pytest.FixtureRequest, name: str) -> None:
    server: Server = request.getfixturevalue(name)
    with pytest.raises(UnknownName, match=r"no such database.*nowhere"):
        open_database(server.url("nowhere"))


@pytest.mark.parametrize("scheme", ["postgresql", "mysql"])
@pytest.mark.parametrize("place", ["127.0.0.1:1", "nowhere.invalid"])
def test_a_server_is_told_when_it_cannot_be_reached(scheme: str, place: str) -> None:
    with pytest.raises(RunError, match="cannot be reached") as caught:
        open_database(f"{scheme}://scott:swordfish@{place}/test")
    assert "swordfish" not in str(caught.value)


@pytest.mark.parametrize("start", [start_postgres, start_mariadb])
def test_a_lost_connection_is_told_when_rows_come(
    start: Callable[[], AbstractContextManager[Server]],
) -> None:
    with start() as server:
        database = open_database(server.url())
        fill(database)
        wide = ", ".join(f"a.name AS n{place}, b.age AS a{place}" for place in range(2))
        joined = " CROSS JOIN ".join(f"people {letter}" for letter in "abcdefgh")
        rows = database.select(f"SELECT {wide} FROM {joined}")
        batches = iter(rows)
        next(batches)
        server.kill()
        with pytest.raises(RunError, match="was lost") as caught:
            for _ in batches:
                pass
        assert "tiger" not in str(caught.value)
        with pytest.raises(RunError):
            database.select("SELECT 1")
        database.close()


@pytest.mark.parametrize("name", SERVERS)
def test_the_database_is_there_again_when_only_the_connection_was_lost(
    request: pytest.FixtureRequest, name: str
) -> None:
    server: Server = request.getfixturevalue(name)
    database, other = open_database(server.url()), open_database(server.url())
    mysql = database.dialect == "mysql"
    (number,) = rows_of(
        database, f"SELECT {'CONNECTION_ID()' if mysql else 'pg_backend_pid()'} AS id"
    )[0]
    other.run(f"KILL {number}" if mysql else f"SELECT pg_terminate_backend({number})")
    with pytest.raises(RunError, match="was lost"):
        rows_of(database, "SELECT 1 AS one")
    assert rows_of(database, "SELECT 1 AS one") == [(1,)]
    database.close()
    other.close()


INTERRUPTED = """
import signal, sys
from elasticdl.sql.databases import open_database

signal.signal(signal.SIGINT, signal.default_int_handler)
database = open_database(sys.argv[1])
print("ready", flush=True)
try:
    database.select(sys.argv[2]).to_table()
except KeyboardInterrupt:
    print(database.select("SELECT 1 AS one").to_table().to_pylist(), flush=True)
database.close()
"""


def test_a_query_stops_when_it_is_interrupted(url: str) -> None:
    """In a process of its own: a process of pytest-xdist does not hear of Ctrl-C."""
    slow = {
        "duckdb": "SELECT sum(hash(i)) FROM range(100000000000) t(i)",
        "sqlite": "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT count(*) FROM r",
        "postgresql": "SELECT pg_sleep(60)",
        "mysql": "SELECT SLEEP(60)",
    }[url.partition(":")[0]]
    command = [sys.executable, "-c", INTERRUPTED, url, slow]
    with subprocess.Popen(command, stdout=-1, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            threading.Event().wait(0.5)  # until it is at work; nothing tells when
            process.send_signal(signal.SIGINT)
            told, _ = process.communicate(timeout=30)
        finally:
            process.kill()
    assert told == "[{'one': 1}]\n"


def test_a_duckdb_file_is_told_when_another_process_has_it(tmp_path: Path) -> None:
    hold = "import duckdb, sys; c = duckdb.connect('held.duckdb'); print('ready', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", hold], stdin=-1, stdout=-1) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        with pytest.raises(
            RunError, match=f"is in use: another process has the file open.*{process.pid}"
        ):
            open_database("duckdb:///held.duckdb")
        process.communicate()


def test_a_sqlite_file_is_told_when_somebody_writes_to_it() -> None:
    first, second = open_database("sqlite:///busy.db"), open_database("sqlite:///busy.db")
    fill(first)
    first.run("BEGIN IMMEDIATE")
    second.run("PRAGMA busy_timeout = 10")
    with pytest.raises(RunError, match="is in use"):
        second.run("DELETE FROM people")
    first.close()
    second.close()


def test_triggers_are_told_when_a_column_would_run_them(database: Database) -> None:
    fill(database)
    database.run("CREATE TABLE log (n INTEGER)")
    body = {
        "sqlite": [
            "CREATE TRIGGER noted AFTER UPDATE ON people BEGIN INSERT INTO log VALUES (1); END"
        ],
        "mysql": [
            "CREATE TRIGGER noted AFTER UPDATE ON people FOR EACH ROW INSERT INTO log VALUES (1)"
        ],
        "postgres": [
            "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log VALUES (1); "
            "RETURN NEW; END $$",
            "CREATE TRIGGER noted AFTER UPDATE ON people FOR EACH ROW EXECUTE FUNCTION note()",
        ],
    }.get(database.dialect)
    if body is None:
        pytest.skip("DuckDB has no triggers")
    for statement in body:
        database.run(statement)
    with pytest.raises(InvalidValue, match=r"trigger 'noted'.*new table"):
        database.target("SELECT * FROM people", ["people"], "guess", overwrite=False)


def test_foreign_keys_are_told_when_mysql_would_lose_them(mysql: Database) -> None:
    fill(mysql, key=True)
    mysql.run(
        "CREATE TABLE child (id INTEGER, person INTEGER, FOREIGN KEY (person) REFERENCES people (id))"
    )
    for table in ("people", "child"):
        with pytest.raises(InvalidValue, match="foreign key"):
            mysql.target(f"SELECT * FROM {table}", [table], "guess", overwrite=False)


def test_a_change_by_others_is_told_when_mysql_has_no_key(
    mysql: Database, mariadb_server: Server
) -> None:
    fill(mysql)
    other = open_database(mariadb_server.url())
    with (
        pytest.raises(RunError, match="changed by somebody else"),
        mysql.target("SELECT * FROM people", ["people"], "guess", overwrite=False) as target,
    ):
        batches = list(predictions(target, "guess"))
        other.run("UPDATE people SET age = 1 WHERE id = 1")
        target.write(batches)
    assert mysql.columns("people") == ["id", "name", "age"]
    other.close()


def test_rows_that_others_add_meanwhile_stay_when_mysql_has_a_key(
    mysql: Database, mariadb_server: Server
) -> None:
    fill(mysql, key=True)
    other = open_database(mariadb_server.url())
    with mysql.target("SELECT * FROM people", ["people"], "guess", overwrite=False) as target:
        batches = list(predictions(target, "guess"))
        other.run("INSERT INTO people VALUES (9, 'New', 9)")
        assert target.write(batches) == 5
    assert rows_of(mysql, "SELECT id, guess FROM people WHERE id IN (1, 9)") == [
        (1, 72.0),
        (9, None),
    ]
    other.close()


def test_writers_wait_and_lose_nothing_when_mysql_swaps(
    mysql: Database, mariadb_server: Server
) -> None:
    mysql.run("CREATE TABLE people (id INTEGER PRIMARY KEY, age INTEGER)")
    mysql.run("INSERT INTO people SELECT seq, 1 FROM seq_1_to_5000")
    stop, added, changed = threading.Event(), set[int](), set[int]()

    def write(writer: int) -> None:
        other = open_database(mariadb_server.url())
        for number in itertools.count(writer, 4):
            if stop.is_set():
                break
            other.run(f"INSERT INTO people (id, age) VALUES ({10_000 + number}, 1)")
            added.add(10_000 + number)
            other.run(f"UPDATE people SET age = 99 WHERE id = {number % 5000 + 1}")
            changed.add(number % 5000 + 1)
        other.close()

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            assert predict(mysql, "SELECT * FROM people", ["people"], "guess", overwrite=True)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    there = {row[0]: row[1] for row in rows_of(mysql, "SELECT id, age FROM people")}
    assert added
    assert set(there) == {*range(1, 5001), *added}
    assert {number for number, age in there.items() if age == 99} == changed
    assert mysql.tables() == ["people"]


def test_nothing_is_written_when_mysql_loses_the_lock_of_a_swap(
    mysql: Database, mariadb_server: Server
) -> None:
    fill(mysql, key=True)
    before = everything(mysql)
    swap = BySwap(mysql, None)  # type: ignore[arg-type]
    target = TableTarget(swap, swap, "SELECT * FROM people", ["people"], "guess", True)
    commit, other = swap.commit, open_database(mariadb_server.url())

    def commit_without_lock() -> None:
        other.run(f"KILL {swap._holder.thread_id()}")
        commit()

    swap.commit = commit_without_lock  # type: ignore[method-assign]
    with pytest.raises(RunError, match="was lost"), target:
        target.write(predictions(target, "guess"))
    assert everything(mysql) == before
    other.close()


def test_the_connection_is_told_to_be_gone_when_it_was_closed_in_use(database: Database) -> None:
    fill(database)
    database._connection.close()  # type: ignore[attr-defined]
    if database.dialect != "mysql":  # which sees it before it asks, and opens another
        with pytest.raises(RunError, match=r"The connection to .* was lost: "):
            database.select("SELECT * FROM people")
    if database.dialect in ("mysql", "postgres"):
        assert len(rows_of(database, "SELECT * FROM people")) == 6


def test_the_connection_is_told_to_be_gone_when_the_driver_stumbles(mysql: Database) -> None:
    mysql.run("CREATE TABLE many (a VARCHAR(200))")
    mysql.run("INSERT INTO many SELECT REPEAT('x', 200) FROM seq_1_to_200000")
    rows = mysql.select("SELECT * FROM many")
    next(iter(rows))
    mysql._connection._rfile = None  # type: ignore[attr-defined]  # as it is after a close in another thread
    with pytest.raises(RunError, match="was lost: it was closed while it was in use"), rows:
        for _ in rows:
            pass
    assert rows_of(mysql, "SELECT count(*) FROM many") == [(200_000,)]
