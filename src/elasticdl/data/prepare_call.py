"""How the user's `prepare_data_for_a_single_file` is called, and what it may return."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from elasticdl.data.files import File
from elasticdl.errors import ContractError

__all__ = ["PrepareFn", "bind"]

PrepareFn = Callable[[File], Iterator[bytes]]
_ADVICE = "Return bytes, such as example.SerializeToString(), or an iterable of bytes."


def bind(function: Callable[..., Any]) -> PrepareFn:
    """The records of a file, whichever of the two signatures the function has.

    `(filename)`, or the older `(file_object, filename)` with the file opened for reading bytes.
    """
    required = _num_required(function)
    if required not in (1, 2):
        raise ContractError(
            f"prepare_data_for_a_single_file takes {required} arguments. "
            "Write it with one, (filename), or with two, (file_object, filename)."
        )

    def call(file: File) -> Iterator[bytes]:
        if required == 1:
            yield from _as_records(function(file.url))
            return
        with file.open() as fileobj:
            yield from _as_records(function(fileobj, file.url))

    return call


def _num_required(function: Callable[..., Any]) -> int:
    parameters = inspect.signature(function).parameters.values()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in positional and p.default is p.empty for p in parameters)


def _as_records(result: Any) -> Iterator[bytes]:
    if isinstance(result, bytes | bytearray | memoryview):
        yield bytes(result)
        return
    if isinstance(result, str) or not isinstance(result, Iterable):
        raise ContractError(f"prepare_data_for_a_single_file returned {_shown(result)}. {_ADVICE}")
    for record in result:
        if not isinstance(record, bytes | bytearray | memoryview):
            raise ContractError(
                f"prepare_data_for_a_single_file yielded {_shown(record)}. {_ADVICE}"
            )
        yield bytes(record)


def _shown(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
