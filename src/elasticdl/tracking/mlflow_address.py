"""Where MLflow is: an address that is checked, and shown without what is secret in it."""

from __future__ import annotations

import os
import re
from importlib.metadata import entry_points
from pathlib import Path
from urllib.parse import parse_qsl, unquote

from elasticdl.errors import InvalidValue, nearest

__all__ = [
    "checked_address",
    "credentials",
    "default_tracking_uri",
    "hide_secrets",
    "secrets_of",
    "shown",
    "sqlite_file",
]

_SQLITE = "sqlite:///"
_KINDS = ("databricks", "http", "https", "mssql", "mysql", "postgresql", "sqlite")
_ENVIRONMENT_SECRETS = ("MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN")


def default_tracking_uri(project_root: Path) -> str:
    """The address in MLFLOW_TRACKING_URI, or else a database in the project, which needs no server."""
    given = os.environ.get("MLFLOW_TRACKING_URI", "").strip()
    return checked_address(given or f"{_SQLITE}{Path(project_root).absolute() / 'mlflow.db'}")


def checked_address(address: str) -> str:
    """The address, with a database's path made absolute.

    >>> checked_address("http://127.0.0.1:5000")
    'http://127.0.0.1:5000'
    """
    if address == "databricks":
        return address
    if re.fullmatch(r"[\w.-]+:\d+(/.*)?", address):
        raise _invalid(address, "it does not say how to speak to it", f"http://{address}")
    kind, separator, rest = address.partition("://")
    if not separator or kind == "file":
        directory = rest if separator else address.removeprefix("file:")
        instead = f"{_SQLITE}{Path(directory or '.').absolute() / 'mlflow.db'}"
        raise _invalid(address, "MLflow 3 no longer keeps runs in plain directories", instead)
    if kind == "sqlite":
        return f"{_SQLITE}{_database_path(address).absolute()}"
    _check_kind(kind, address)
    if not shown(address).partition("://")[2].strip("/") and kind in ("http", "https"):
        raise _invalid(address, "it names no host", f"{kind}://127.0.0.1:5000")
    return address


def sqlite_file(address: str) -> Path | None:
    """The file of a sqlite database; None for any other address."""
    return Path(address.removeprefix(_SQLITE)) if address.startswith(_SQLITE) else None


def shown(address: str) -> str:
    """An address as it may be written down: without user, password and options.

    >>> shown("https://me:secret@mlflow.example.com/team?token=abc")
    'https://mlflow.example.com/team'
    """
    kind, separator, rest = address.partition("://")
    if not separator or kind == "sqlite":
        return address
    return f"{kind}://{re.split('[?#]', rest.rpartition('@')[2])[0]}"


def credentials(address: str) -> tuple[str, str]:
    """User and password of an address, decoded; empty when it holds none.

    >>> credentials("http://me:a%40b@host")
    ('me', 'a@b')
    """
    user, _, password = address.partition("://")[2].rpartition("@")[0].partition(":")
    return unquote(user), unquote(password)


def secrets_of(address: str) -> list[str]:
    """All texts that must not reach a log or a file, the longest first."""
    userinfo = address.partition("://")[2].rpartition("@")[0]
    password = userinfo.partition(":")[2] or userinfo
    options = [value for _, value in parse_qsl(address.partition("?")[2]) if len(value) > 3]
    environment = [os.environ.get(name, "") for name in _ENVIRONMENT_SECRETS]
    found = {password, unquote(password), *options, *environment}
    return sorted(filter(None, found), key=len, reverse=True)


def hide_secrets(text: str, secrets: list[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, "***")
    return text


def _database_path(address: str) -> Path:
    path = address.removeprefix(_SQLITE)
    if not address.startswith(_SQLITE) or path in ("", ":memory:"):
        instead = f"{_SQLITE}mlflow.db"
        raise _invalid(address, "a database in memory is gone when the run ends", instead)
    return Path(path)


def _check_kind(kind: str, address: str) -> None:
    plugins = [point.name for point in entry_points(group="mlflow.tracking_store")]
    known = [*_KINDS, *plugins]
    if kind.partition("+")[0] not in known:
        raise InvalidValue(
            f"Invalid MLflow tracking address {shown(address)!r}: {kind!r} is no kind of address. "
            f"{nearest(kind, known)}"
        )


def _invalid(address: str, why: str, instead: str) -> InvalidValue:
    return InvalidValue(
        f"Invalid MLflow tracking address {shown(address)!r}: {why}. Write {shown(instead)} instead."
    )
