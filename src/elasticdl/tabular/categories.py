"""Categories of a COLUMN clause: columns whose values are names of things, however they are told apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from elasticdl.tabular.call import Reader
from elasticdl.tabular.derived import text_category
from elasticdl.tabular.expression import Argument, Call
from elasticdl.tabular.plan import Feature
from elasticdl.tabular.profile import ColumnProfile
from elasticdl.tabular.several import as_texts, misfits, several, shown
from elasticdl.tabular.types import CASTABLE, MISSING
from elasticdl.tabular.vectors import split

__all__ = ["CATEGORIES", "category", "is_category"]

MAX_SIZE = 10_000_000
CATEGORIES = {
    "CATEGORY_ID": "CATEGORY_ID(column, size): whole numbers from 0 to size - 1",
    "SEQ_CATEGORY_ID": "SEQ_CATEGORY_ID(column, size[, separator]): text such as '3,5,7'",
    "CATEGORY_HASH": "CATEGORY_HASH(column, buckets)",
    "VOCABULARY": "VOCABULARY(column, [values])",
    "BUCKET": "BUCKET(column, [boundaries]) or BUCKET(column, number of buckets)",
    "CROSS": "CROSS([column, column], buckets)",
    "SPARSE": "SPARSE(column, size[, separator]): text such as '3,5,7', the places of the ones",
}


def is_category(call: Call) -> bool:
    return call.function in CATEGORIES


def category(call: Call, reader: Reader) -> Feature:
    """The category of a call, or of a bare column; its params are without the encoding."""
    if call.function is None:
        column = reader.column(call, call.arguments[0] if call.arguments else None)
        return _of_column(call, reader, column)
    made = _MAKERS[call.function](call, reader)
    return made


def _of_column(call: Call, reader: Reader, column: ColumnProfile) -> Feature:
    if column.family in ("text", "binary", "null"):
        kind, params = text_category(column)
        return Feature(column.name, kind, (column.name,), params)
    _check_fits(call, reader, column)
    counts = column.distinct.counts
    if column.family in ("integer", "boolean") and counts is not None and len(counts) <= 1_000:
        values = sorted(int(value) for value in counts)
        values += [MISSING] if column.nulls else []
        params = {"vocabulary": values, "unseen": False, "size": len(values)}
        return Feature(column.name, "vocabulary", (column.name,), params)
    raise reader.error(
        call,
        f"The column {column.name!r} is {column.type}, and here a category is needed. Use "
        f"BUCKET({column.name}, 10), or CATEGORY_HASH({column.name}, 1000) for whole numbers.",
    )


def _id(call: Call, reader: Reader) -> Feature:
    arguments = reader.arguments(call, CATEGORIES["CATEGORY_ID"], 2, 3)
    column = _whole(call, reader, arguments[0])
    size = reader.number(call, arguments[1], "the size", 1, MAX_SIZE)
    moments = column.moments
    if moments.count and (moments.min < 0 or moments.max >= size):
        raise reader.error(
            call,
            f"The column {column.name!r} has values from {moments.min:.0f} to {moments.max:.0f}, and "
            f"CATEGORY_ID with size {size} takes 0 to {size - 1}. Give a larger size, or use CATEGORY_HASH.",
        )
    missing = column.nulls > 0
    params = {"ids": size, "missing": missing, "size": size + missing}
    return Feature(column.name, "id", (column.name,), params)


def _sequence(call: Call, reader: Reader) -> Feature:
    arguments = reader.arguments(call, CATEGORIES[str(call.function)], 2, 4)
    column = reader.column(call, arguments[0])
    if column.family != "text":
        raise reader.error(
            call,
            f"The column {column.name!r} is {column.type}, and {call.function} takes text such as '3,5,7'. For "
            "one number a row use CATEGORY_ID.",
        )
    size = reader.shape(call, arguments[1])
    separator = reader.separator(call, arguments[2]) if len(arguments) > 2 else ","
    params = {"size": size, "separator": separator}
    _check_sequence(call, reader, column, params)
    return Feature(column.name, "sequence", (column.name,), params)


def _check_sequence(
    call: Call, reader: Reader, column: ColumnProfile, params: Mapping[str, Any]
) -> None:
    form, size = several("sequence", params), params["size"]
    if len(wrong := misfits(as_texts(column.examples), form)):
        raise reader.error(
            call,
            f"The column {column.name!r} has {str(wrong[0])!r}, and {call.function} takes {shown(form)}. For words "
            "use CATEGORY_HASH or VOCABULARY.",
        )
    for text in column.examples:
        ids = [int(part) for part in split(text, params["separator"]) if part]
        if ids and not 0 <= min(ids) <= max(ids) < size:
            raise reader.error(
                call,
                f"The column {column.name!r} has {text!r}, and {call.function} with size {size} takes 0 to {size - 1}. "
                "Give a larger size.",
            )


def _hash(call: Call, reader: Reader) -> Feature:
    arguments = reader.arguments(call, CATEGORIES["CATEGORY_HASH"], 2, 2)
    column = _nameable(call, reader, arguments[0])
    size = reader.number(call, arguments[1], "the number of buckets", 2, MAX_SIZE)
    return Feature(column.name, "hash", (column.name,), {"size": size})


def _vocabulary(call: Call, reader: Reader) -> Feature:
    arguments = reader.arguments(call, CATEGORIES["VOCABULARY"], 2, 2)
    column = _nameable(call, reader, arguments[0])
    given = arguments[1]
    if not isinstance(given, tuple) or not given:
        raise reader.error(call, f"The values are {given!r}: {CATEGORIES['VOCABULARY']}")
    values = [_value(call, reader, column, value) for value in given]
    if len(set(values)) < len(values):
        raise reader.error(call, "The list of VOCABULARY has a value twice.")
    params = {"vocabulary": values, "unseen": True, "size": len(values) + 1}
    return Feature(column.name, "vocabulary", (column.name,), params)


def _value(call: Call, reader: Reader, column: ColumnProfile, value: Argument) -> str | int:
    if isinstance(value, Call) and value.function is None and value.arguments:
        value = value.arguments[0]
    if column.family == "text" and isinstance(value, str | int | float):
        return str(value)
    if column.family != "text" and isinstance(value, int):
        return int(value)
    raise reader.error(
        call, f"{value!r} is no value of the column {column.name!r}, which is {column.type}."
    )


def _bucket(call: Call, reader: Reader) -> Feature:
    arguments = reader.arguments(call, CATEGORIES["BUCKET"], 2, 2)
    column = reader.column(call, arguments[0])
    if column.family not in (*CASTABLE, "time"):
        raise reader.error(
            call, f"The column {column.name!r} is {column.type}, and BUCKET takes numbers."
        )
    boundaries = _boundaries(call, reader, column, arguments[1])
    missing = column.nulls + column.odd > 0
    params = {
        "boundaries": boundaries,
        "center": column.moments.mean,
        "missing": missing,
        "size": len(boundaries) + 1 + missing,
    }
    return Feature(column.name, "bucket", (column.name,), params)


def _boundaries(call: Call, reader: Reader, column: ColumnProfile, given: Argument) -> list[float]:
    if not isinstance(given, tuple):
        number = reader.number(call, given, "the number of buckets", 2, 10_000)
        parts = np.linspace(0, 1, number + 1)[1:-1]
        sample = column.sample.values or [0.0]
        return sorted(set(np.quantile(sample, parts).tolist()))
    numbers = [v for v in given if isinstance(v, int | float) and not isinstance(v, bool)]
    boundaries = [float(v) for v in numbers]
    if len(numbers) < len(given) or not given or boundaries != sorted(set(boundaries)):
        raise reader.error(
            call, f"The boundaries of BUCKET are {list(given)!r}: give different numbers, in order."
        )
    return boundaries


def _cross(call: Call, reader: Reader) -> Feature:
    arguments = reader.arguments(call, CATEGORIES["CROSS"], 2, 2)
    given = arguments[0]
    if not isinstance(given, tuple) or len(given) < 2:
        raise reader.error(
            call, f"CROSS takes a list of at least two columns: {CATEGORIES['CROSS']}"
        )
    size = reader.number(call, arguments[1], "the number of buckets", 2, MAX_SIZE)
    keys = [_key(call, reader, one) for one in given]
    columns = tuple(dict.fromkeys(key["column"] for key in keys))
    return Feature("_x_".join(columns), "cross", columns, {"keys": keys, "size": size})


def _key(call: Call, reader: Reader, given: Argument) -> dict[str, Any]:
    if isinstance(given, Call) and given.function == "BUCKET":
        made = _bucket(given, reader)
        return {"column": made.columns[0], "kind": "bucket", **made.params}
    if isinstance(given, Call) and given.function in ("CATEGORY_ID", "CATEGORY_HASH", "VOCABULARY"):
        call, given = given, given.arguments[0] if given.arguments else None
    return {"column": _nameable(call, reader, given).name, "kind": "value"}


def _whole(call: Call, reader: Reader, given: Argument) -> ColumnProfile:
    column = reader.column(call, given)
    _check_fits(call, reader, column)
    if column.family in ("integer", "boolean"):
        return column
    advice = "CATEGORY_HASH or VOCABULARY" if column.family == "text" else "BUCKET, or cast it"
    raise reader.error(
        call,
        f"The column {column.name!r} is {column.type}, and {call.function} takes whole numbers. Use {advice}.",
    )


def _check_fits(call: Call, reader: Reader, column: ColumnProfile) -> None:
    if not column.fits_int64:
        raise reader.error(
            call,
            f"The column {column.name!r} has whole numbers beyond 64 bits, which are no categories. Cast it to text.",
        )


def _nameable(call: Call, reader: Reader, given: Argument) -> ColumnProfile:
    column = reader.column(call, given)
    _check_fits(call, reader, column)
    if column.family in ("integer", "boolean", "text", "binary", "null"):
        return column
    raise reader.error(
        call,
        f"The column {column.name!r} is {column.type}, and {call.function} takes text or whole numbers. Use "
        f"BUCKET({column.name}, 10), or cast it.",
    )


_MAKERS: dict[str, Callable[[Call, Reader], Feature]] = {
    "CATEGORY_ID": _id,
    "SEQ_CATEGORY_ID": _sequence,
    "SPARSE": _sequence,
    "CATEGORY_HASH": _hash,
    "VOCABULARY": _vocabulary,
    "BUCKET": _bucket,
    "CROSS": _cross,
}
