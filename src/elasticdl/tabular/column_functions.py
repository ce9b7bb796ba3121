"""The functions of a COLUMN clause: what the user wrote, checked against the columns, as a feature."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from elasticdl.errors import DataError, StatementError, nearest
from elasticdl.tabular.call import Reader
from elasticdl.tabular.categories import CATEGORIES, category, is_category
from elasticdl.tabular.derived import MAX_SAID_ONE_HOT, encoding, natural, number_params
from elasticdl.tabular.expression import Argument, Call, ColumnGroup
from elasticdl.tabular.plan import Feature, Label
from elasticdl.tabular.profile import ColumnProfile
from elasticdl.tabular.types import CASTABLE
from elasticdl.tabular.vectors import vector_params

__all__ = ["feature_of", "with_target"]

COMBINERS = ("mean", "sum", "sqrtn")
MAX_DIMENSION = 4096


def with_target(group: ColumnGroup, known: Sequence[str] | None) -> ColumnGroup:
    """The group for the input that it means: `FOR linear_feature_columns`, as in SQLFlow, is `linear`.

    Args:
      group: a COLUMN clause.
      known: the inputs of the model, none when it has one; None when nobody knows.

    Raises:
      StatementError: the model has no such input.
    """
    if group.target is None:
        return group
    target = group.target.removesuffix("feature_columns").removesuffix("_") or None
    if target is not None and known is not None and target not in known:
        advice = nearest(target, known) if known else "It has one input: leave FOR out."
        span = group.target_span or group.columns[0].span
        raise StatementError(
            f"The model has no input {group.target!r} for a COLUMN clause. {advice}",
            span.start,
            span.end,
        )
    return replace(group, target=target)


def feature_of(
    call: Call,
    columns: Mapping[str, ColumnProfile],
    label: Label | None,
    target: str | None,
) -> Feature:
    """The feature that a call asks for.

    Raises:
      StatementError: an unknown function or column, a wrong number or type of arguments; with the place.
    """
    reader = Reader(columns, label)
    try:
        feature = _feature(call, reader)
    except DataError as error:  # of the column's values: here it is the clause that asks for them
        raise StatementError(str(error), call.span.start, call.span.end) from error
    return replace(feature, target=target)


def _feature(call: Call, reader: Reader) -> Feature:
    if call.function is None:
        return natural(reader.column(call, call.arguments[0] if call.arguments else None))
    if call.function in _FUNCTIONS:
        return _FUNCTIONS[call.function](call, reader)
    if call.function == "WEIGHTED_CATEGORY":
        raise reader.error(
            call,
            "WEIGHTED_CATEGORY is not there: weights beside categories are not supported. Use "
            "SEQ_CATEGORY_ID(column, size) without weights, or give the weights as a column of numbers.",
        )
    known = [*_FUNCTIONS, *USAGE]
    raise reader.error(
        call, f"There is no column function {call.function}. {nearest(call.function, known)}"
    )


def _dense(call: Call, reader: Reader) -> Feature:
    arguments = reader.arguments(call, USAGE["DENSE"], 1, 4)
    column = reader.column(call, arguments[0])
    if column.family in ("text", "binary"):
        return Feature(column.name, "vector", (column.name,), vector_params(call, reader, column))
    if len(arguments) > 1 and reader.shape(call, arguments[1]) != 1:
        raise reader.error(
            call,
            f"The column {column.name!r} is {column.type}, one number a row. A shape is for a column of text such "
            f"as '1,2,3': {USAGE['DENSE']}",
        )
    if column.family not in (*CASTABLE, "time"):
        raise reader.error(
            call, f"The column {column.name!r} is {column.type}, and DENSE takes numbers."
        )
    return Feature(column.name, "number", (column.name,), number_params(column))


def _categorical(call: Call, reader: Reader) -> Feature:
    """A category that is not wrapped in EMBEDDING or INDICATOR: the one that fits its size."""
    found = category(call, reader)
    many = found.params["size"] if call.function == "SPARSE" else MAX_SAID_ONE_HOT
    form = encoding(found.params["size"], many)
    params = {**found.params, **_pooled(found.kind, form)}
    return Feature(found.name, found.kind, found.columns, params)


def _embedding(call: Call, reader: Reader) -> Feature:
    arguments = reader.arguments(call, USAGE["EMBEDDING"], 2, 3)
    found = category(_inner(call, arguments[0], reader), reader)
    dimension = reader.number(call, arguments[1], "the dimension", 1, MAX_DIMENSION)
    combiner = arguments[2] if len(arguments) > 2 else "mean"
    if combiner not in COMBINERS:
        raise reader.error(
            call, f"The combiner is {combiner!r}: give one of {', '.join(COMBINERS)}."
        )
    form = {"encoding": "embedding", "dimension": dimension, "combiner": combiner}
    return Feature(
        found.name, found.kind, found.columns, {**found.params, **_pooled(found.kind, form)}
    )


def _indicator(call: Call, reader: Reader) -> Feature:
    arguments = reader.arguments(call, USAGE["INDICATOR"], 1, 1)
    found = category(_inner(call, arguments[0], reader), reader)
    return Feature(found.name, found.kind, found.columns, {**found.params, "encoding": "one_hot"})


def _pooled(kind: str, form: Mapping[str, Any]) -> dict[str, Any]:
    """Only of several values a row is there something to combine."""
    several = kind == "sequence" and form["encoding"] == "embedding"
    rest = {key: value for key, value in form.items() if key != "combiner"}
    return {**rest, "combiner": form.get("combiner", "mean")} if several else rest


def _inner(call: Call, argument: Argument, reader: Reader) -> Call:
    if isinstance(argument, str):
        return Call(None, (argument,), call.span)
    if isinstance(argument, Call) and (argument.function is None or is_category(argument)):
        return argument
    shown = argument.function if isinstance(argument, Call) else repr(argument)
    raise reader.error(
        call,
        f"{call.function} takes a category, not {shown}: a column, or one of {', '.join(CATEGORIES)}.",
    )


USAGE = {
    "DENSE": "DENSE(column) or DENSE(column, size, separator)",
    "EMBEDDING": "EMBEDDING(CATEGORY_ID(column, size), dimension[, combiner])",
    "INDICATOR": "INDICATOR(CATEGORY_ID(column, size))",
    **CATEGORIES,
}
_FUNCTIONS: dict[str, Callable[[Call, Reader], Feature]] = {
    "DENSE": _dense,
    "NUMERIC": _dense,
    "EMBEDDING": _embedding,
    "INDICATOR": _indicator,
    **dict.fromkeys(CATEGORIES, _categorical),
}
