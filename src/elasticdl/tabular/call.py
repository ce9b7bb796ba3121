"""Reading a call of a COLUMN clause: its arguments, one by one, with errors that point to the call."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from elasticdl.errors import StatementError, nearest
from elasticdl.tabular.expression import Argument, Call
from elasticdl.tabular.plan import Label
from elasticdl.tabular.profile import ColumnProfile
from elasticdl.tabular.types import find

__all__ = ["Reader"]

_SEPARATORS = {
    "comma": ",",
    "semicolon": ";",
    "colon": ":",
    "pipe": "|",
    "tab": "\t",
    "space": " ",
    "blank": " ",
}


class Reader:
    """The columns that a clause may name."""

    def __init__(self, columns: Mapping[str, ColumnProfile], label: Label | None) -> None:
        self._columns, self._label = columns, label

    def error(self, call: Call, message: str) -> StatementError:
        return StatementError(message.rstrip(), call.span.start, call.span.end)

    def arguments(self, call: Call, usage: str, least: int, most: int) -> Sequence[Argument]:
        """The arguments, when there are as many as there should be."""
        given = len(call.arguments)
        if least <= given <= most:
            return call.arguments
        expected = str(least) if least == most else f"{least} to {most}"
        many = "argument" if expected == "1" else "arguments"
        raise self.error(call, f"{call.function} takes {expected} {many}, and got {given}: {usage}")

    def column(self, call: Call, argument: Argument) -> ColumnProfile:
        """The column that an argument names; a bare column in a call of its own counts too."""
        if isinstance(argument, Call) and argument.function in (None, "DENSE", "NUMERIC"):
            call, argument = argument, argument.arguments[0] if argument.arguments else None
        if not isinstance(argument, str):
            shown = argument.function if isinstance(argument, Call) else repr(argument)
            raise self.error(call, f"{call.function} takes a column here, not {shown}.")
        if (name := find(argument, self._columns)) is not None:
            return self._columns[name]
        if self._label is not None and argument.lower() == self._label.name.lower():
            raise self.error(call, f"The column {argument!r} is the label, which is no input.")
        raise self.error(
            call,
            f"There is no column {argument!r} in the SELECT. {nearest(argument, self._columns)}",
        )

    def number(self, call: Call, argument: Argument, what: str, least: int, most: int) -> int:
        """A whole number."""
        whole = isinstance(argument, int | float) and not isinstance(argument, bool)
        if whole and argument == int(argument) and least <= argument <= most:  # type: ignore[operator, arg-type]
            return int(argument)  # type: ignore[arg-type]
        raise self.error(
            call,
            f"{what[:1].upper()}{what[1:]} of {call.function} is {argument!r}: give a whole number from {least} "
            f"to {most:,}.",
        )

    def shape(self, call: Call, argument: Argument) -> int:
        """How many values: `3`, or a shape as a list, `[3]` or `[2, 2]`."""
        sizes = argument if isinstance(argument, tuple) else (argument,)
        return math.prod(self.number(call, size, "the size", 1, 1_000_000) for size in sizes)

    def separator(self, call: Call, argument: Argument) -> str:
        """What stands between values in a text: as it is, or by its name."""
        if isinstance(argument, str) and argument:
            return _SEPARATORS.get(argument.lower(), argument)
        raise self.error(
            call, f"The separator of {call.function} is {argument!r}: give a string such as ','."
        )
