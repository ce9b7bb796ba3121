"""The feature that a column becomes when nobody says how, by its type and its values."""

from __future__ import annotations

import math
from typing import Any

from elasticdl.errors import DataError
from elasticdl.tabular.plan import Feature
from elasticdl.tabular.profile import ColumnProfile

__all__ = [
    "MAX_ONE_HOT",
    "MAX_SAID_ONE_HOT",
    "MAX_VOCABULARY",
    "encoding",
    "is_constant",
    "is_name",
    "natural",
    "number_params",
    "text_category",
]

MAX_VOCABULARY = 1_000
MAX_ONE_HOT = 32
MAX_SAID_ONE_HOT = 1_000
"""Of categories that the user asks for."""
MAX_BUCKETS = 2**16


def natural(column: ColumnProfile, target: str | None = None) -> Feature:
    """The feature of a column.

    Raises:
      DataError: a model has no use for values of its type.
    """
    if column.family is None:
        raise DataError(
            f"The column {column.name!r} is {column.type}, which is no single value a row that a model could "
            "take. Leave it out of the SELECT, or cast it, for example to a number or text."
        )
    if column.family in ("text", "binary", "null"):
        kind, params = text_category(column)
        params = {**params, **encoding(int(params["size"]))}
    elif column.family == "time":
        kind, params = (
            "time",
            {**number_params(column), "hour": str(column.type)[:9] == "timestamp"},
        )
    elif column.family == "boolean":
        kind, params = "flag", {"mean": column.moments.mean, "missing": column.nulls > 0}
    else:
        kind, params = "number", number_params(column)
    return Feature(column.name, kind, (column.name,), params, target)


def is_constant(column: ColumnProfile) -> str | None:
    """Why a column tells nothing, in words; None when it does tell something."""
    number = column.distinct.number()
    if column.family is None or number is None or number > 1:
        return None
    if number == 0:
        return "has only NULLs"
    if column.nulls or column.odd:
        return None
    counts = column.distinct.counts or {}
    shown = repr(next(iter(counts), ""))
    return f"has the same value in all rows, {shown if len(shown) < 50 else shown[:47] + '...'}"


def is_name(column: ColumnProfile) -> bool:
    """Whether a text is another one in nearly every row: a model would learn the rows by heart."""
    number = column.distinct.number() or 0
    return column.family in ("text", "binary") and number >= 0.95 * max(1, column.distinct.seen)


def number_params(column: ColumnProfile) -> dict[str, Any]:
    """Mean, variance, and whether a NULL gets an input of its own."""
    moments = column.moments
    if not math.isfinite(moments.variance) or not math.isfinite(moments.mean):
        raise DataError(
            f"The column {column.name!r} has values up to {max(-moments.min, moments.max):g}, too large to "
            "compute with. Leave it out, or take its logarithm in the SELECT."
        )
    # Of a column without variance, a value that differs later must not be taken for infinitely far away.
    variance = moments.variance if moments.variance > 0 else 1.0
    missing = column.nulls + column.odd > 0
    return {"mean": moments.mean, "variance": variance, "missing": missing}


def text_category(column: ColumnProfile) -> tuple[str, dict[str, Any]]:
    """A vocabulary of few values, else hash buckets: the kind, and its parameters without the encoding."""
    counts = column.distinct.counts
    if counts is not None and len(counts) <= MAX_VOCABULARY and column.family != "binary":
        # "" stands for NULL too.
        counts = {**counts, "": counts.get("", 0) + column.nulls}
        ordered = sorted((v for v, n in counts.items() if n), key=lambda v: (-counts[v], str(v)))
        return "vocabulary", {"vocabulary": ordered, "unseen": False, "size": len(ordered)}
    number = max(column.distinct.number() or 0, MAX_VOCABULARY)
    buckets = min(MAX_BUCKETS, 2 ** math.ceil(math.log2(2 * number)))
    return "hash", {"size": buckets}


def encoding(size: int, one_hot: int = MAX_ONE_HOT) -> dict[str, Any]:
    """One input a value, or for many values a vector that is learnt.

    >>> encoding(3), encoding(1000)
    ({'encoding': 'one_hot'}, {'encoding': 'embedding', 'dimension': 12})
    """
    if size <= one_hot:
        return {"encoding": "one_hot"}
    return {"encoding": "embedding", "dimension": min(32, math.ceil(2 * size**0.25))}
