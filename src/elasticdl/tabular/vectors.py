"""Columns of text that hold several numbers a row, such as '0.5,1.5': their sizes and statistics."""

from __future__ import annotations

import numpy as np

from elasticdl.tabular.call import Reader
from elasticdl.tabular.expression import Call
from elasticdl.tabular.profile import ColumnProfile

__all__ = ["split", "vector_params"]


def vector_params(call: Call, reader: Reader, column: ColumnProfile) -> dict[str, object]:
    """What DENSE of a text column needs, with mean and variance by its sample."""
    given = call.arguments
    separator = reader.separator(call, given[2]) if len(given) > 2 else ","
    rows = [split(str(text), separator) for text in column.sample.values if text]
    try:
        numbers = [[float(part) for part in row] for row in rows]
    except ValueError:
        shown = next(
            (
                text
                for text in column.sample.values
                if text and not _is_vector(str(text), separator)
            ),
            "",
        )
        raise reader.error(
            call,
            f"The column {column.name!r} is text, and has {shown!r}, which is not numbers with {separator!r} "
            "between them. For words use CATEGORY_HASH or VOCABULARY.",
        ) from None
    lengths = {len(row) for row in numbers}
    size = reader.shape(call, given[1]) if len(given) > 1 else max(lengths, default=1)
    if lengths - {size}:
        raise reader.error(
            call,
            f"The column {column.name!r} has rows of {min(lengths - {size})} numbers, and DENSE expects {size} "
            "in every row.",
        )
    table = np.array(numbers or [[0.0] * size])
    variance = np.where(table.var(axis=0) > 0, table.var(axis=0), 1.0)
    return {
        "size": size,
        "separator": separator,
        "mean": table.mean(axis=0).tolist(),
        "variance": variance.tolist(),
    }


def split(text: str, separator: str) -> list[str]:
    """The parts of a text; brackets around all of them do not matter.

    >>> split("[1, 2]", ",")
    ['1', '2']
    """
    bare = text.strip().strip("[]")
    return bare.split() if separator == " " else [part.strip() for part in bare.split(separator)]


def _is_vector(text: str, separator: str) -> bool:
    try:
        return bool([float(part) for part in split(text, separator)])
    except ValueError:
        return False
