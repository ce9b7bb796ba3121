"""Why MLflow does not take something, in few words: its own are a screen long, with SQL and links in them."""

from __future__ import annotations

import re

from elasticdl.tracking.mlflow_address import hide_secrets

__all__ = ["reason_of"]

MAX_REASON = 200
_SQL = re.compile(r"\s*(\[SQL: |\[parameters: |\(Background on this error at)")
_CLASSES = re.compile(r"^(\([A-Za-z_][\w.]*\)\s*)+")
_USERINFO = re.compile(r"(?<=://)[^\s/]*@")


def reason_of(error: BaseException, secrets: list[str]) -> str:
    """One line, without an end of a sentence.

    >>> reason_of(OSError("(sqlite3.OperationalError) database is locked [SQL: SELECT 1]"), [])
    'database is locked'
    """
    text = str(error) or type(error).__name__
    if found := re.search(r"\[Errno -?\d+\] ([\w' ]+)", text):
        return found[1].strip()
    if "timed out" in text:
        return "it does not answer in time"
    if found := re.search(r"error code (401|403)\b", text):
        return f"it refuses this user or password (HTTP {found[1]})"
    # Before anything is cut off: half a password is no longer known as one.
    text = _USERINFO.sub("***@", hide_secrets(text, secrets))
    words = " ".join(_CLASSES.sub("", _SQL.split(text, maxsplit=1)[0]).split())
    return _cut(words or type(error).__name__).rstrip(" .:,;")


def _cut(text: str) -> str:
    """At the end of a word."""
    if len(text) <= MAX_REASON:
        return text
    return text[: MAX_REASON + 1].rpartition(" ")[0] or text[:MAX_REASON]
