"""The COLUMN clause: column functions, one inside the other, and the model's input that they are for."""

from __future__ import annotations

from elasticdl.sql.reader import Reader
from elasticdl.tabular.expression import Argument, Call, ColumnGroup, Span

__all__ = ["column_group"]

_RENAMED = {"NUMERIC": "DENSE"}  # SQLFlow's older name


def column_group(reader: Reader) -> ColumnGroup:
    """What stands after COLUMN: `a, DENSE(b) FOR target`."""
    columns = [_column(reader)]
    while reader.skip(","):
        if reader.is_over or reader.is_at_stop or reader.peek().word == "FOR":
            break
        columns.append(_column(reader))
    if not reader.skip("FOR"):
        return ColumnGroup(tuple(columns))
    target = reader.column("the model's input after FOR")
    return ColumnGroup(tuple(columns), str(target), target.span)


def _column(reader: Reader) -> Call:
    if reader.peek().kind == "run" and reader.peek(1).kind == "(":
        return _call(reader, 1)
    word = reader.column("a column or a function of one after COLUMN")
    return Call(None, (word.value,), word.span)


def _call(reader: Reader, depth: int) -> Call:
    function, opening = reader.take(), reader.take()
    reader.check_depth(depth, opening)
    if not function.value.isidentifier():
        reader.fail(f"{reader.shown(function)} is no function of columns.", function)
    arguments: list[Argument] = []
    while reader.peek().kind != ")":
        arguments.append(_argument(reader, depth))
        reader.separator(")", opening)
    closing = reader.take()
    name = _RENAMED.get(function.word, function.word)
    return Call(name, tuple(arguments), Span(function.start, closing.end))


def _argument(reader: Reader, depth: int) -> Argument:
    lexeme = reader.peek()
    if lexeme.kind == "run" and reader.peek(1).kind == "(":
        return _call(reader, depth + 1)
    if lexeme.kind == "[":
        return _list(reader, depth + 1)
    if reader.peek(1).kind == "=":
        reader.fail("The arguments of column functions have no names. Give them in their order.")
    if lexeme.kind in ("string", "name"):
        return reader.take().value
    if lexeme.kind != "run":
        reader.fail(f"Expected a column, number, string or list, got {reader.shown()}.")
    value = reader.scalar(lexeme)
    reader.take()
    return value


def _list(reader: Reader, depth: int) -> tuple[Argument, ...]:
    opening = reader.take()
    reader.check_depth(depth, opening)
    items: list[Argument] = []
    while not reader.skip("]"):
        items.append(_argument(reader, depth))
        reader.separator("]", opening)
    return tuple(items)
