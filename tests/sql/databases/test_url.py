"""Addresses of databases."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from elasticdl.errors import ElasticDLError, InvalidValue, NotFound
from elasticdl.sql.databases import open_database
from elasticdl.sql.databases.url import read_address

from .servers import Server


@pytest.mark.parametrize(
    ("url", "dialect", "path"),
    [
        (None, "duckdb", ":memory:"),
        ("", "duckdb", ":memory:"),
        (":memory:", "duckdb", ":memory:"),
        ("duckdb://", "duckdb", ":memory:"),
        ("duckdb:///a/b.db", "duckdb", "a/b.db"),
        ("duckdb:////a/b.db", "duckdb", "/a/b.db"),
        ("some.duckdb", "duckdb", "some.duckdb"),
        ("dir/some.db", "duckdb", "dir/some.db"),
        ("some.sqlite3", "sqlite", "some.sqlite3"),
        ("sqlite:///with%20space.db?mode=ro", "sqlite", "with space.db"),
        ("sqlite://", "sqlite", ":memory:"),
    ],
)
def test_files_are_read_from_an_address(url: str | None, dialect: str, path: str) -> None:
    address = read_address(url)
    assert (address.dialect, address.path) == (dialect, path)


@pytest.mark.parametrize(
    ("url", "host", "port", "user", "password", "database"),
    [
        ("postgresql://u:p@h:5433/d?sslmode=require", "h", 5433, "u", "p", "d"),
        ("postgres://u@h/d", "h", None, "u", "", "d"),
        ("postgresql://u:p%40q@[::1]:5432/d", "::1", 5432, "u", "p@q", "d"),
        ("mysql://u:p@ss/w?rd@h:3306/d", "h", 3306, "u", "p@ss/w?rd", "d"),
        ("mariadb://u:p@h/", "h", None, "u", "p", ""),
        (
            "mysql://root:ro%ot@tcp(127.0.0.1:3306)/iris?maxAllowedPacket=0",
            "127.0.0.1",
            3306,
            "root",
            "ro%ot",
            "iris",
        ),
        ("mysql://root:root@tcp(db:3306)/?maxAllowedPacket=0", "db", 3306, "root", "root", ""),
        ("postgresql:///d", "localhost", None, "", "", "d"),
    ],
)
def test_servers_are_read_from_an_address(
    url: str, host: str, port: int | None, user: str, password: str, database: str
) -> None:
    address = read_address(url)
    found = (address.host, address.port, address.user, address.password, address.database)
    assert found == (host, port, user, password, database)
    assert not password or password not in repr(address) + address.shown or password in (user, "p")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("hive://user:secret@host/db", "SQLFlow had it.*duckdb:///"),
        ("maxcompute://id:secret@host", "Unknown kind of database 'maxcompute://'"),
        ("postgresq://u:secret@h/d", "Did you mean 'postgresql'"),
        ("oracle://u:secret@h/d", "Unknown kind of database 'oracle://'"),
        ("data.csv", "no address of a database"),
        ("u:secret@host", "no address of a database"),
        ("host=h password=secret dbname=z", "no address of a database"),
        ("host=h user=u password=secret dbname=z.db", "no address of a database"),
        ("password='secret' host=a://b", "no address of a database"),
        ("user secret", "no address of a database"),
        ("mysql://root:secret/db", "no host and port"),
        ("duckdb://u:secret@host/x.db", "three slashes"),
        ("duckdb://data.db", "three slashes"),
        ("postgresql://u:secret@h:port/d", "host:port"),
        ("mysql://u:secret@h:99999/d", "host:port"),
        ("mysql://u:secret@unix(/tmp/socket)/d", "cannot be read"),
    ],
)
def test_an_address_is_refused_when_it_is_none(url: str, words: str) -> None:
    with pytest.raises(InvalidValue, match=words) as caught:
        open_database(url)
    assert "secret" not in str(caught.value)


def test_a_sqlite_file_is_known_when_its_name_could_be_duckdbs() -> None:
    connection = sqlite3.connect("old.db")
    connection.execute("CREATE TABLE t (a)")
    connection.commit()
    connection.close()
    database = open_database("old.db")
    assert (database.dialect, database.tables()) == ("sqlite", ["t"])
    database.close()


@pytest.mark.parametrize("scheme", ["duckdb", "sqlite"])
def test_a_missing_directory_is_told_when_a_file_is_opened(scheme: str) -> None:
    with pytest.raises(NotFound, match="there is no directory"):
        open_database(f"{scheme}:///missing/x.db")


@pytest.mark.parametrize("scheme", ["duckdb", "sqlite"])
def test_another_file_is_refused_when_it_is_no_database(scheme: str) -> None:
    Path("x.db").write_text("this is a text, and no database at all " * 100)
    with pytest.raises(ElasticDLError, match=r"(?i)not a (valid DuckDB )?database"):
        open_database(f"{scheme}:///x.db")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("duckdb://?memory_limitt=1GB", "memory_limitt"),
        ("sqlite://?mod=ro", "Did you mean 'mode'"),
        ("mysql://u@127.0.0.1:1/d?ssl_caa=x", "Did you mean 'ssl_ca'"),
        ("mysql://u@127.0.0.1:1/d?read_timeout=x", "read_timeout is a number"),
        ("postgresql://u@127.0.0.1:1/d?sslmod=x", "sslmod"),
    ],
)
def test_unknown_options_are_refused(url: str, words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        open_database(url)


def test_sqlflows_form_opens_a_server(mariadb_server: Server) -> None:
    from .servers import PASSWORD

    place = f"tcp(127.0.0.1:{mariadb_server.port})"
    database = open_database(f"mysql://scott:{PASSWORD}@{place}/?maxAllowedPacket=0&parseTime=true")
    assert database.shown == f"mysql://scott@127.0.0.1:{mariadb_server.port}/"
    database.run("CREATE TABLE test.flow AS SELECT 1 AS age")
    with database.target(
        "SELECT * FROM test.flow", ["test", "flown"], "guess", overwrite=True
    ) as target:
        assert (
            target.write(
                batch.append_column("guess", batch.column("age")) for batch in target.rows()
            )
            == 1
        )
    assert database.select("SELECT guess FROM test.flown").to_table().to_pylist() == [{"guess": 1}]
    database.close()
