"""What DuckDB says when it refuses."""

from __future__ import annotations

import re

from elasticdl.sql.databases.failures import Trouble

__all__ = ["trouble"]

_TABLE = re.compile(r'Table with name "?(?P<name>.+?)"? does not exist')
_COLUMN = re.compile(
    r'(?:Referenced column|Column) "(?P<name>.+?)" (?:not found|does not exist)|'
    r'does not have a column named "(?P<other>.+?)"'
)
_KINDS = {
    "Conversion": "data",
    "Constraint": "data",
    "Out of Range": "data",
    "Invalid Input": "data",
    "Out of Memory": "other",
    "IO": "other",
    "INTERRUPT": "stopped",
    "Parser": "statement",
    "Binder": "statement",
    "Catalog": "statement",
    "Not implemented": "statement",
    "TransactionContext": "statement",
}


def trouble(error: BaseException) -> Trouble:
    """Also of errors that come through Arrow, which keep DuckDB's words only."""
    text = str(error)
    kind, _, words = text.partition(" Error: ")
    if kind == "Connection":
        return Trouble("lost", words)
    if "Query interrupted" in text:
        return Trouble("stopped", text)
    if match := _TABLE.search(text):
        return Trouble("table", words, match["name"])
    if match := _COLUMN.search(text):
        return Trouble("column", words, match["name"] or match["other"])
    if "Could not set lock" in text:
        holder = re.search(r"held in (.*?\(PID \d+\))", text)
        return Trouble(
            "locked", f"another process has the file open, {holder[1] if holder else words}"
        )
    if "No files found" in text:
        return Trouble("file", words)
    if "already exists" in text and kind == "Catalog":
        return Trouble("exists", words)
    return Trouble(_KINDS.get(kind, "other"), words or text)
