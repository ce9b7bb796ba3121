"""Strings from the outside, parsed as literals and never evaluated."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

from elasticdl.errors import InvalidValue

__all__ = ["parse_bool", "parse_float", "parse_int", "parse_params"]

_BARE_WORD = re.compile(r"[A-Za-z_][\w./:@*+-]*")
_WORDS = {"true": True, "false": False, "none": None}


def parse_bool(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).lower()
    if text in ("true", "yes", "t", "y", "1"):
        return True
    if text in ("false", "no", "f", "n", "0"):
        return False
    raise InvalidValue(f"Invalid {name} {value!r}: give true or false.")


def parse_int(name: str, value: Any) -> int:
    try:
        if isinstance(value, bool | float):
            raise ValueError
        return int(value)
    except (TypeError, ValueError):
        raise InvalidValue(
            f"Invalid {name} {value!r}: give a whole number, for example 2."
        ) from None


def parse_float(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InvalidValue(f"Invalid {name} {value!r}: give a number, for example 0.5.") from None


def parse_params(name: str, value: Any) -> dict[str, Any]:
    """`a=[1, 2], b='x'` or `a=[1, 2]; b='x'` as a dict of literals; a dict is taken as it is.

    >>> parse_params("params", "hidden_units=[10, 100], learning_rate=0.01")
    {'hidden_units': [10, 100], 'learning_rate': 0.01}
    >>> parse_params("data_reader_params", "columns=['a', 'b']; sep=','")
    {'columns': ['a', 'b'], 'sep': ','}
    """
    if isinstance(value, Mapping):
        return {str(k): v for k, v in value.items()}
    params: dict[str, Any] = {}
    for piece in _pieces(name, str(value)):
        key, equals, literal = piece.partition("=")
        key = key.strip()
        if not equals or not key.isidentifier():
            raise InvalidValue(
                f"Invalid {name} {value!r}: {piece.strip()!r} is not of the form name=value. "
                "Separate several with commas or semicolons: a=1, b=[2, 3]."
            )
        if key in params:
            raise InvalidValue(f"Invalid {name} {value!r}: {key!r} is given twice.")
        params[key] = _literal(name, key, literal.strip())
    return params


def _literal(name: str, key: str, text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        pass
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _BARE_WORD.fullmatch(text):
        return text
    raise InvalidValue(
        f"Invalid {name}: the value {text!r} of {key!r} is not a literal. "
        "Give a number, a quoted string, a list, a dict, True, False or None."
    )


def _pieces(name: str, text: str) -> Iterator[str]:
    """Split at commas and semicolons that stand outside of quotes and brackets."""
    start, depth, quote, i = 0, 0, "", 0
    while i < len(text):
        char = text[i]
        if quote:
            if char == "\\":
                i += 1
            elif char == quote:
                quote = ""
        elif char in "'\"":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char in ",;" and depth == 0:
            if text[start:i].strip():
                yield text[start:i]
            start = i + 1
        i += 1
    if quote or depth:
        raise InvalidValue(f"Invalid {name} {text!r}: a quote or bracket is not closed.")
    if text[start:].strip():
        yield text[start:]
