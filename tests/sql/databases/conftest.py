"""The same empty database four times: DuckDB, SQLite, PostgreSQL and MariaDB."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from elasticdl.sql.databases import Database, open_database

from .servers import mariadb_server, postgres_server

__all__ = ["mariadb_server", "postgres_server"]

KINDS = ("duckdb", "sqlite", "postgres", "mysql")


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database."""
    return empty_database(request, request.param, tmp_path)


def empty_database(request: pytest.FixtureRequest, kind: str, directory: Path) -> str:
    if kind in ("duckdb", "sqlite"):
        return f"{kind}:///{directory}/test.db"
    server = request.getfixturevalue("postgres_server" if kind == "postgres" else "mariadb_server")
    first = open_database(server.url())
    what = "SCHEMA public" if kind == "postgres" else "DATABASE test"
    first.run(f"DROP {what} {'CASCADE' if kind == 'postgres' else ''}")
    first.run(f"CREATE {what}")
    first.close()
    return str(server.url())


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    opened = open_database(url)
    yield opened
    opened.close()


@pytest.fixture
def postgres(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    opened = open_database(empty_database(request, "postgres", tmp_path))
    yield opened
    opened.close()


@pytest.fixture
def mysql(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    opened = open_database(empty_database(request, "mysql", tmp_path))
    yield opened
    opened.close()
