"""The parts of the page as the template takes them: text in rows, nothing to be worked out."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from upath import UPath

from elasticdl.reports.section import Section
from elasticdl.reports.shown import shown
from elasticdl.reports.table import ID_COLUMN, PointTable, Statistics
from elasticdl.reports.worst import WorstCases, worst_cases

__all__ = ["flat", "results", "section_parts"]

_WORST_SHOWN = 20


def results(sections: Sequence[Section]) -> dict[str, Any]:
    """The numbers of all sections side by side."""
    numbers = [section.numbers() for section in sections]
    names = list(dict.fromkeys(name for one in numbers for name in one))
    rows = [
        [name, _origin(name, sections), *(shown(one.get(name)) for one in numbers)]
        for name in names
    ]
    return {"header": ["metric", "kind", *(section.name for section in sections)], "rows": rows}


def section_parts(
    section: Section, plots: Sequence[Mapping[str, Any]], directory: UPath | None
) -> dict[str, Any]:
    """Everything that the template shows of a section; `plots` are the distributions, then the matrix."""
    has_matrix = section.confusion is not None
    num_distributions = len(plots) - int(has_matrix and bool(plots))
    parts: dict[str, Any] = {
        "title": section.name[:1].upper() + section.name[1:],
        "remarks": _remarks(section),
        "statistics": [],
        "statistics_header": ["function", *Statistics.NAMES],
        "distributions": plots[:num_distributions],
        "confusion": plots[num_distributions:],
        "classes": _classes(section),
        "class_remark": _class_remark(section),
        "worst": [],
        "files": [{"name": file.name, "link": _link(file, directory)} for file in section.files],
    }
    if section.table is not None:
        parts["statistics"] = [
            [name, *map(shown, column.row())] for name, column in section.table.statistics().items()
        ]
        if worst := worst_cases(section.table, section.worst_by, _WORST_SHOWN):
            parts |= _worst(section.table, worst)
    return parts


def flat(config: Mapping[str, Any], above: str = "") -> list[tuple[str, str]]:
    """The configuration with dotted keys, in its order."""
    rows: list[tuple[str, str]] = []
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            rows += flat(value, f"{above}{key}.")
        else:
            rows.append((f"{above}{key}", str(value)))
    return rows


def _origin(name: str, sections: Sequence[Section]) -> str:
    return "model" if any(name in section.metrics for section in sections) else "function, mean"


def _remarks(section: Section) -> list[str]:
    if section.table is None:
        return []
    count, repeated = len(section.table), section.table.duplicates
    remarks = [f"{count} data point{'' if count == 1 else 's'}."]
    if repeated:
        examples = ", ".join(section.table.repeated_ids())
        remarks.append(
            f"{repeated} of them have an id that was there before, for example: {examples}."
        )
    return remarks


def _classes(section: Section) -> list[list[str]]:
    scores = section.confusion.scores() if section.confusion is not None else []
    return [
        [one.name, shown(one.precision), shown(one.recall), shown(one.f1), shown(one.support)]
        for one in scores
    ]


def _class_remark(section: Section) -> str:
    if section.confusion is None:
        return ""
    remark = f"Accuracy {shown(section.confusion.accuracy)}. A row is a true class, a column what was predicted."
    if section.confusion.left_out:
        remark += (
            f" {section.confusion.left_out} data points without a finite prediction are left out."
        )
    return remark


def _worst(table: PointTable, worst: WorstCases) -> dict[str, Any]:
    ids = table.ids
    columns = [table.values(name).tolist() for name in table.columns]
    return {
        "worst_remark": _worst_remark(worst),
        "worst_header": [ID_COLUMN, *table.columns],
        "worst": [[str(ids[i]), *(shown(column[i]) for column in columns)] for i in worst.rows],
    }


def _worst_remark(worst: WorstCases) -> str:
    direction = worst.direction
    better = "less" if direction.descending else "more"
    remark = f"By {worst.by}, the {direction.worst} first: "
    remark += {
        "function": f"its function says that {better} is better.",
        "name": f"by its name, {better} is better.",
        "nobody": f"{better} was taken to be better, which the name does not tell. "
        "Give the function an attribute higher_is_better to say it.",
    }[direction.told_by]
    if worst.missing:
        remark += " Before them are those without a value."
    return remark


def _link(file: UPath, directory: UPath | None) -> str | None:
    """A relative address; None when there is no way from one to the other."""
    if directory is None or file.protocol != directory.protocol:
        return None
    if isinstance(file, Path):
        relative = os.path.relpath(os.path.abspath(str(file)), os.path.abspath(str(directory)))
        return quote(Path(relative).as_posix())
    return quote(posixpath.relpath(file.path, directory.path))
