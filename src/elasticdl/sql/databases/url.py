"""Addresses of databases: what may be written, what it says, and how it is shown without its secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote

from elasticdl.errors import InvalidValue, nearest

__all__ = ["Address", "read_address"]

MEMORY = ":memory:"
EXAMPLES = (
    "duckdb:///data.duckdb, sqlite:///data.sqlite, postgresql://user:password@host:5432/database or "
    "mysql://user:password@host:3306/database"
)
_DIALECTS = {
    "duckdb": "duckdb",
    "sqlite": "sqlite",
    "sqlite3": "sqlite",
    "postgresql": "postgres",
    "postgres": "postgres",
    "mysql": "mysql",
    "mariadb": "mysql",
}
_FILES = {"duckdb": "DuckDB", "sqlite": "SQLite"}
_ENDINGS = {
    ".duckdb": "duckdb",
    ".ddb": "duckdb",
    ".db": "duckdb",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
}
_SETTINGS = re.compile(r"\b(?:host|hostaddr|port|dbname|user|password|passfile|service)\s*=")
"""Of PostgreSQL's own form, `host=... password=... dbname=...`, which is not read."""
_PLAIN = re.compile(r"[\w./\\~-]+")
_SQLITE_FILE = b"SQLite format 3\0"
# A password may hold an @ or a / that nobody escaped: the last @ ends it. SQLFlow writes @tcp(host:port).
_SERVER = re.compile(
    r"(?:(?P<login>.*)@)?"
    r"(?:(?P<protocol>tcp|unix)\((?P<inside>[^)]*)\)|(?P<plain>[^@/?]*))"
    r"(?:/(?P<database>[^?@]*))?(?:\?(?P<query>.*))?",
    re.DOTALL,
)


@dataclass(frozen=True)
class Address:
    """Where a database is.

    Attributes:
      dialect: what kind, by sqlglot's name.
      shown: the address as a person may see it.
      path: of a database that is a file; `:memory:` for none.
      options: what stood after the question mark.
    """

    dialect: str
    shown: str
    path: str = ""
    host: str = ""
    port: int | None = None
    user: str = ""
    password: str = field(default="", repr=False)
    database: str = ""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


def read_address(url: str | None) -> Address:
    """Read an address; None is a DuckDB in memory.

    >>> read_address("mysql://root:secret@tcp(10.0.0.1:3306)/iris?maxAllowedPacket=0").shown
    'mysql://root@10.0.0.1:3306/iris'
    >>> read_address("sqlite:///flights.db").path
    'flights.db'

    Raises:
      InvalidValue: the address is of no known kind, or is not whole.
    """
    if url is None or url.strip() in ("", MEMORY):
        return Address("duckdb", "DuckDB in memory", MEMORY)
    scheme, separator, rest = url.strip().partition("://")
    if not separator or not re.fullmatch(r"[\w+.-]+", scheme):
        return _bare(url.strip())
    dialect = _DIALECTS.get(scheme.lower())
    if dialect is None:
        raise InvalidValue(
            f"Unknown kind of database {scheme + '://'!r}. {_hint(scheme)}Give {EXAMPLES}."
        )
    if dialect in _FILES:
        return _file(dialect, rest)
    return _server(dialect, scheme.lower(), rest)


def _hint(scheme: str) -> str:
    if scheme.lower() in ("hive", "maxcompute", "odps", "alisa"):
        return "SQLFlow had it, this has not: copy the rows into one of the others. "
    found = nearest(scheme, _DIALECTS)
    return f"{found} " if found.startswith("Did") else ""


def _bare(path: str) -> Address:
    dialect = _ENDINGS.get(Path(path).suffix.lower())
    if dialect is None or _SETTINGS.search(path):
        raise InvalidValue(f"{_harmless(path)} is no address of a database. Give {EXAMPLES}.")
    if dialect == "duckdb" and _is_sqlite(path):
        dialect = "sqlite"
    return Address(dialect, path, path)


def _harmless(text: str) -> str:
    """A text to stand in a message, if it can hold no password."""
    if _PLAIN.fullmatch(text):
        return repr(text)
    return "What was given (which is not shown, since there may be a password in it)"


def _is_sqlite(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(_SQLITE_FILE)) == _SQLITE_FILE
    except OSError:
        return False


def _file(dialect: str, rest: str) -> Address:
    """`scheme:///relative/path`, `scheme:////absolute/path`; nothing is memory."""
    text, _, query = rest.partition("?")
    if text and not text.startswith("/"):
        raise InvalidValue(
            f"{dialect}:// names a host, but {_FILES[dialect]} is a file: write three slashes and its path, "
            f"{dialect}:///{text if _PLAIN.fullmatch(text) else 'data.db'}, or four for an absolute path."
        )
    path = unquote(text[1:]) or MEMORY
    shown = f"{_FILES[dialect]} in memory" if path == MEMORY else f"{dialect}:///{path}"
    return Address(dialect, shown, path, options=_options(query))


def _server(dialect: str, scheme: str, rest: str) -> Address:
    match = _SERVER.fullmatch(rest)
    if match is None or match["protocol"] == "unix":
        raise InvalidValue(
            f"The address of the {scheme} server cannot be read. Write {scheme}://user:password@host:port/database, "
            "with %40 for an @ and %2F for a / in the password."
        )
    user, _, password = (match["login"] or "").partition(":")
    # SQLFlow's form is that of a Go driver, in which nothing is escaped.
    read = (lambda text: text) if match["protocol"] else unquote
    host, port = _host(match["inside"] or match["plain"] or "", scheme)
    database = unquote(match["database"] or "")
    place = f"{read(user)}@" if user else ""
    place += f"[{host}]" if ":" in host else host
    place += f":{port}" if port else ""
    return Address(
        dialect,
        f"{scheme}://{place}/{database}",
        host=host or "localhost",
        port=port,
        user=read(user),
        password=read(password),
        database=database,
        options=_options(match["query"] or ""),
    )


def _host(text: str, scheme: str) -> tuple[str, int | None]:
    match = re.fullmatch(r"(?:\[(?P<six>[^\]]*)\]|(?P<name>[^:]*))(?::(?P<port>\d*))?", text)
    if match is None or (match["port"] and int(match["port"]) > 65535):
        raise InvalidValue(
            f"{_harmless(text)} is no host and port of the {scheme} server: write "
            f"{scheme}://user:password@host:port/database."
        )
    return match["six"] or match["name"] or "", int(match["port"]) if match["port"] else None


def _options(query: str) -> dict[str, str]:
    return dict(parse_qsl(query, keep_blank_values=True))
