"""Strings from the outside, parsed as literals and never evaluated."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

from elasticdl.errors import InvalidValue, nearest

__all__ = [
    "parse_bool",
    "parse_float",
    "parse_int",
    "parse_params",
    "parse_resources",
    "parse_workers",
    "workers_text",
]

_BARE_WORD = re.compile(r"[A-Za-z_][\w./:@*+-]*")
_WORDS = {"true": True, "false": False, "none": None}
_QUANTITY = re.compile(r"(\d+(?:\.\d*)?|\.\d+)([A-Za-z]*)")
_BYTES: dict[str, float] = {
    "": 1,
    **{unit: 1000**power for power, unit in enumerate("KMGT", 1)},
    **{f"{unit}i": 1024**power for power, unit in enumerate("KMGT", 1)},
    "k": 1000,
}
_RESOURCES: dict[str, dict[str, float]] = {
    "cpu": {"": 1, "m": 1e-3},
    "gpu": {"": 1},
    "memory": _BYTES,
    "disk": _BYTES,
}


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


def parse_workers(name: str, value: Any) -> tuple[int, int]:
    """A number of workers, or the least and the most of an elastic range.

    >>> parse_workers("num_workers", 3)
    (3, 3)
    >>> parse_workers("num_workers", "2:4")
    (2, 4)
    """
    example = "Give a number, for example 3, or MIN:MAX, for example 2:4."
    parts = [part.strip() for part in str(value).split(":")]
    if len(parts) > 2 or not all(re.fullmatch(r"[+-]?\d+", part, re.ASCII) for part in parts):
        raise InvalidValue(f"Invalid {name} {value!r}: it is not a number of workers. {example}")
    least, most = int(parts[0]), int(parts[-1])
    if least < 1 or most < 1:
        raise InvalidValue(f"Invalid {name} {value!r}: the fewest workers are 1. {example}")
    if least > most:
        raise InvalidValue(
            f"Invalid {name} {value!r}: the minimum {least} is above the maximum {most}. "
            "Give MIN:MAX, for example 2:4."
        )
    return least, most


def workers_text(workers: tuple[int, int]) -> str:
    """What `parse_workers` reads, in the one way it is written down.

    >>> workers_text((3, 3)), workers_text((2, 4))
    ('3', '2:4')
    """
    least, most = workers
    return str(least) if least == most else f"{least}:{most}"


def parse_resources(name: str, text: str) -> dict[str, float]:
    """`cpu=1,memory=4096Mi,gpu=1,disk=1Gi`: processors, bytes, graphics cards; `cpu=500m` is half of one.

    >>> parse_resources("worker_resource_request", "cpu=500m, memory=2Ki")
    {'cpu': 0.5, 'memory': 2048.0}
    """
    resources: dict[str, float] = {}
    for piece in filter(None, (piece.strip() for piece in text.split(","))):
        key, equals, amount = (part.strip() for part in piece.partition("="))
        if not equals:
            raise InvalidValue(
                f"Invalid {name} {text!r}: {piece!r} is not of the form name=amount. "
                "Give for example cpu=1,memory=4096Mi."
            )
        if key not in _RESOURCES:
            raise InvalidValue(
                f"Invalid {name} {text!r}: unknown resource {key!r}. {nearest(key, _RESOURCES)}"
            )
        if key in resources:
            raise InvalidValue(f"Invalid {name} {text!r}: {key!r} is given twice.")
        resources[key] = _amount(name, key, amount)
    return resources


def _amount(name: str, key: str, text: str) -> float:
    units = _RESOURCES[key]
    match = _QUANTITY.fullmatch(text)
    if match is None or match[2] not in units:
        example = {"cpu": "1 or 500m", "gpu": "1"}.get(key, "4096Mi or 4Gi")
        raise InvalidValue(f"Invalid {name}: {key}={text!r} is not an amount. Give {example}.")
    return float(match[1]) * units[match[2]]


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
