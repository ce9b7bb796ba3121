"""Databases by their address: DuckDB, SQLite, PostgreSQL, MySQL and MariaDB."""

from __future__ import annotations

from elasticdl.errors import MissingPackage
from elasticdl.sql.databases.base import Database, Target
from elasticdl.sql.databases.url import read_address

__all__ = ["Database", "Target", "open_database"]


def open_database(url: str | None) -> Database:
    """Open a database.

    Args:
      url: `duckdb:///data.duckdb`, `sqlite:///data.sqlite`, `postgresql://user:password@host:5432/database`,
        `mysql://user:password@host:3306/database`, `mariadb://` likewise, a path that ends in `.duckdb`, `.db` or
        `.sqlite`, or SQLFlow's `mysql://user:password@tcp(host:3306)/database`. None is a DuckDB in memory.

    Raises:
      InvalidValue: the address, the user or the password is wrong.
      MissingPackage: the database's driver is not installed.
      RunError: the server cannot be reached.

    >>> database = open_database(None)
    >>> database.select("SELECT 42 AS answer").to_table().to_pylist()
    [{'answer': 42}]
    >>> database.close()
    """
    address = read_address(url)
    try:
        if address.dialect == "duckdb":
            from elasticdl.sql.databases.duckdb_database import DuckDBDatabase

            return DuckDBDatabase(address)
        if address.dialect == "sqlite":
            from elasticdl.sql.databases.sqlite_database import SQLiteDatabase

            return SQLiteDatabase(address)
        if address.dialect == "postgres":
            from elasticdl.sql.databases.postgres_database import PostgresDatabase

            return PostgresDatabase(address)
        from elasticdl.sql.databases.mysql_database import MySQLDatabase

        return MySQLDatabase(address)
    except ModuleNotFoundError as error:
        raise MissingPackage(
            f"{address.shown} needs the package {error.name}. Install it with: pip install 'elasticdl[sql]'"
        ) from error
