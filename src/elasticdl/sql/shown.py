"""Rows for a person to read: the first of them, each value as text."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from elasticdl.sql.rows import Rows

__all__ = ["NULL", "Shown", "html_table", "text_table"]

NULL = "NULL"
LONGEST = 200
"""Characters of a value."""


@dataclass(frozen=True)
class Shown:
    """The first rows, as texts.

    Attributes:
      names: the columns.
      numeric: which of them hold numbers, to be aligned to the right.
      rows: the values; None where there is none.
      more: how many rows there are beyond these.
    """

    names: Sequence[str]
    numeric: Sequence[bool]
    rows: Sequence[Sequence[str | None]]
    more: int = 0

    @classmethod
    def of(cls, rows: Rows, limit: int) -> Shown:
        """Takes all rows, keeps the first, and counts the others."""
        kept: list[pa.RecordBatch] = []
        room, more = limit, 0
        with rows:
            for batch in rows:
                kept.append(batch.slice(0, room))
                more += max(0, batch.num_rows - room)
                room -= min(room, batch.num_rows)
        table = pa.Table.from_batches(kept, schema=rows.schema)
        columns = [_texts(column) for column in table.columns]
        return cls(
            names=[_plain(name) for name in table.column_names],
            numeric=[_is_number(field.type) for field in table.schema],
            rows=list(zip(*columns, strict=True)),
            more=more,
        )

    @property
    def ending(self) -> str:
        """What to say below the rows, if there is anything to say."""
        if self.more:
            return f"... {self.more:,} more {'row' if self.more == 1 else 'rows'}"
        return "" if self.rows else "(no rows)"


def text_table(shown: Shown) -> str:
    """Plain columns under a header.

    >>> print(text_table(Shown.of(Rows.of(pa.table({"name": ["Ann", None], "age": [7, 12]})), 9)))
    name  age
    ----  ---
    Ann     7
    NULL   12
    """
    rows = [[NULL if cell is None else cell for cell in row] for row in shown.rows]
    widths = [max(map(len, cells)) for cells in zip(shown.names, *rows, strict=True)]
    lines = [shown.names, ["-" * width for width in widths], *rows]
    texts = ["  ".join(_align(line, widths, shown.numeric)).rstrip() for line in lines]
    return "\n".join([*texts, shown.ending] if shown.ending else texts)


def html_table(shown: Shown) -> str:
    """For a notebook."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in shown.names)
    body = "".join(f"<tr>{''.join(map(_html_cell, row, shown.numeric))}</tr>" for row in shown.rows)
    ending = f"<p>{html.escape(shown.ending)}</p>" if shown.ending else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{ending}"


def _html_cell(cell: str | None, numeric: bool) -> str:
    align = "right" if numeric else "left"
    text = f"<i style='opacity:.5'>{NULL}</i>" if cell is None else html.escape(cell)
    return f"<td style='text-align:{align}'>{text}</td>"


def _align(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> Sequence[str]:
    return [
        cell.rjust(width) if number else cell.ljust(width)
        for cell, width, number in zip(cells, widths, numeric, strict=True)
    ]


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _texts(column: Any) -> list[str | None]:
    text: Callable[[Any], str] = _text
    if pa.types.is_float32(column.type) or pa.types.is_float16(column.type):
        text = _short_float
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    return [None if value is None else text(value) for value in column.to_pylist()]


def _short_float(value: float) -> str:
    """Python has doubles only: 0.1 would be shown as 0.10000000149011612."""
    return str(np.float32(value))


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        text = value[:LONGEST].hex(" ")
    elif isinstance(value, (list, dict)):
        text = json.dumps(value, default=str, ensure_ascii=False)
    else:
        text = str(value)
    return _plain(text if len(text) <= LONGEST else f"{text[:LONGEST]}...")


def _plain(text: str) -> str:
    """A value that holds a terminal's commands is shown, not obeyed; a line stays a line."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
