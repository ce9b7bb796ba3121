"""The `columns` parameter, shared by the readers of formats that have columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from elasticdl.errors import DataError, InvalidValue, near_match

__all__ = ["check_columns", "locate"]


def check_columns(columns: Any) -> tuple[str, ...] | None:
    """The names as a tuple; None means all columns."""
    if columns is None:
        return None
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        raise InvalidValue(f"Invalid columns {columns!r}: give a list: columns=['a', 'b'].")
    if not columns or not all(isinstance(name, str) for name in columns):
        raise InvalidValue(f"Invalid columns {columns!r}: give names: columns=['a', 'b'].")
    if twice := sorted({name for name in columns if columns.count(name) > 1}):
        raise InvalidValue(f"Invalid columns {columns!r}: {twice[0]!r} is named twice.")
    return tuple(columns)


def locate(wanted: Sequence[str], header: Sequence[str], url: str) -> list[int]:
    """Where each wanted column stands in a header."""
    for name in wanted:
        if name not in header:
            match = near_match(name, header)
            meant = f"Did you mean {match!r}? " if match else ""
            raise DataError(
                f"{url} has no column {name!r}. {meant}Its columns are: {', '.join(header)}."
            )
        if header.count(name) > 1:
            raise DataError(f"{url} has {header.count(name)} columns named {name!r}. Rename them.")
    return [header.index(name) for name in wanted]
