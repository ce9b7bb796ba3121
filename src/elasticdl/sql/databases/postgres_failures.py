"""What PostgreSQL says when it refuses, or is not there."""

from __future__ import annotations

import re

from elasticdl.sql.databases.failures import GONE, Trouble

__all__ = ["trouble"]

_STATES = (
    ("42P01", "table"),
    ("42703", "column"),
    ("42P07", "exists"),
    ("42", "statement"),
    ("3D000", "database"),
    ("3F000", "table"),
    ("28", "login"),
    ("57P", "lost"),
    ("08", "lost"),
    ("22", "data"),
    ("23", "data"),
    ("55P03", "locked"),
    ("40", "locked"),
    ("0A", "statement"),
    ("25", "statement"),
)
_WORDS = (
    ("option", r"invalid URI query parameter|invalid sslmode value|invalid connection option"),
    ("stopped", r"canceling statement due to user request"),
    ("login", r"password authentication failed|no password supplied|role \".*\" does not exist|no pg_hba\.conf entry"),
    ("database", r"database \".*\" does not exist"),
    ("lost", r"closed the connection|connection has been closed|terminating connection|no COPY in progress|"
             r"connection to server was lost|no connection to the server|could not receive data"),
    ("lost", r"SSL SYSCALL error|bad connection|PQgetCopyData"),
    ("host", r"could not translate host name|Connection refused|timeout expired|No route to host|unreachable|"
             r"is not accepting|starting up|recovery mode|Failed to connect"),
    ("data", r"division by zero|invalid input syntax|out of range"),
)  # fmt: skip
_NAME = re.compile(r'(?:relation|column|table|schema) "?([^"\n]+?)"? does not exist')


def trouble(error: BaseException) -> Trouble:
    """Also of errors that come through Arrow, which keep the words only."""
    text = str(error)
    words = _own_words(text)
    if "must call AdbcConnectionInit" in text:
        return GONE
    for kind, pattern in _WORDS:
        if re.search(pattern, text):
            return Trouble(kind, words)
    state = getattr(error, "sqlstate", None) or ""
    for beginning, kind in _STATES:
        if state.startswith(beginning):
            match = _NAME.search(words)
            if kind in ("table", "column") and match is None:
                kind = "statement"
            return Trouble(kind, words, match[1] if match else "")
    return Trouble("other", words)


def _own_words(text: str) -> str:
    """What the server said, with the place that it shows, unless that is in a statement of the driver's."""
    text = re.split(r"\n\nQuery was:|\. SQLSTATE: ", text)[0]
    match = re.search(r"(?:ERROR|FATAL|PANIC):  (.*)", text, re.DOTALL)
    text = (
        match[1]
        if match
        else re.sub(r"^[A-Z_]+: (?:\[libpq\] )?(?:Failed to connect: )?", "", text)
    )
    return text.split("\nLINE 1: COPY (")[0].strip() or "it gave no reason"
