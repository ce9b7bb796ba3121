"""A COLUMN clause as it was written: `DENSE(age)`, `EMBEDDING(CATEGORY_ID(role, 10), 8)`, a bare `age`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["Argument", "Call", "ColumnGroup", "Span"]


@dataclass(frozen=True)
class Span:
    """From here to there in a text, in characters."""

    start: int
    end: int


@dataclass(frozen=True)
class Call:
    """A column function, or a bare column, which has no function: `Call(None, ("age",), span)`.

    The names of functions are in upper case; those of columns are as written, without quotes.
    """

    function: str | None
    arguments: tuple[Argument, ...]
    span: Span


Argument = Call | str | int | float | bool | None | tuple["Argument", ...]
"""A nested call; a bare word or string; a number; `[lists]` as tuples."""


@dataclass(frozen=True)
class ColumnGroup:
    """`COLUMN a, b FOR target`: the target names an input of the model; None for its only one."""

    columns: Sequence[Call]
    target: str | None = None
    target_span: Span | None = field(default=None, compare=False)
