"""Columns of text that hold several numbers a row, such as '0.5,1.5': their sizes and statistics."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa

from elasticdl.tabular.call import Reader
from elasticdl.tabular.expression import Call
from elasticdl.tabular.profile import ColumnProfile
from elasticdl.tabular.several import as_texts, misfits, several, shown

__all__ = ["split", "vector_params"]


def vector_params(call: Call, reader: Reader, column: ColumnProfile) -> dict[str, object]:
    """What DENSE of a text column needs, with mean and variance by its sample."""
    given = call.arguments
    separator = reader.separator(call, given[2]) if len(given) > 2 else ","
    texts = [text for text in as_texts(column.examples).to_pylist() if split(text, separator)]
    lengths = [len(split(text, separator)) for text in texts]
    size = reader.shape(call, given[1]) if len(given) > 1 else max(lengths, default=1)
    form = several("vector", {"size": size, "separator": separator})
    if len(wrong := misfits(pa.array(texts, pa.string()), form)):
        raise reader.error(
            call,
            f"The column {column.name!r} is text, and has {str(wrong[0])!r}, and DENSE takes {shown(form)} in every "
            "row. For words use CATEGORY_HASH or VOCABULARY.",
        )
    sample = [split(text, separator) for text in as_texts(column.sample.values).to_pylist()]
    numbers = [[float(part) for part in row] for row in sample if row]
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
    bare = re.sub(r"[\[\]]", "", text).strip()
    if separator == " ":
        return bare.split()
    return [part.strip() for part in bare.split(separator)] if bare else []
