"""A table as CSV files: all rows, the statistics, and the worst cases first."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from typing import Any

from upath import UPath

from elasticdl.reports.table import ID_COLUMN, PointTable, Statistics
from elasticdl.reports.worst import direction_of, worst_cases
from elasticdl.storage import storage_errors, write_file

__all__ = ["write_table"]


def write_table(
    directory: UPath, stem: str, table: PointTable, *, worst_by: str | None = None
) -> list[UPath]:
    """Write `<stem>.csv`, `<stem>_summary.csv` and `<stem>_worst_cases.csv`.

    The summary says in its last column which values are the worst: the largest or the smallest. The worst
    cases are at most 1,000 rows. All are UTF-8; what is missing (NaN) is an empty field.
    """
    with storage_errors(directory):
        directory.mkdir(parents=True, exist_ok=True)
    header = [ID_COLUMN, *table.columns]
    ids = table.ids
    columns = [table.values(name).tolist() for name in table.columns]
    summary = [
        [name, *stats.row(), direction_of(table, name).worst]
        for name, stats in table.statistics().items()
    ]
    worst = worst_cases(table, worst_by)
    worst_rows = [
        [ids[i], *(column[i] for column in columns)] for i in (worst.rows if worst else ())
    ]
    return [
        _write(directory / f"{stem}.csv", header, zip(ids, *columns, strict=True)),
        _write(directory / f"{stem}_summary.csv", ["metric", *Statistics.NAMES, "worst"], summary),
        _write(directory / f"{stem}_worst_cases.csv", header, worst_rows),
    ]


class _Lines(list[str]):
    """Takes the rows of a CSV writer. It ends them with CR LF, or would not quote a CR in a name."""

    def write(self, row: str) -> None:
        self.append(row[:-2] + "\n")


def _write(where: UPath, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> UPath:
    lines = _Lines()
    writer = csv.writer(lines, lineterminator="\r\n")
    writer.writerow(header)
    writer.writerows([_field(value) for value in row] for row in rows)
    write_file(where, "".join(lines).encode("utf-8", "backslashreplace"))
    return where


def _field(value: Any) -> Any:
    return "" if isinstance(value, float) and math.isnan(value) else value
