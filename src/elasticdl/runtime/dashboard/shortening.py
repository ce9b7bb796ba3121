"""What others wrote may be of any size: what is told of it is not. Pure."""

from __future__ import annotations

from itertools import islice
from typing import Any

__all__ = ["shallow", "short"]

LONGEST = 4000
MOST = 200
DEEPEST = 6


def short(text: str, most: int = LONGEST) -> str:
    """The text, or its begin.

    >>> short("abcdef", 3)
    'abc ...'
    """
    return text if len(text) <= most else f"{text[:most]} ..."


def shallow(value: Any, depth: int = 0) -> Any:
    """A JSON value without what is too long or too deep in it; `...` stands for that.

    >>> shallow({"a": [[[[[[[1]]]]]]]})
    {'a': [[[[['...']]]]]}
    """
    if isinstance(value, str):
        return short(value)
    if not isinstance(value, dict | list):
        return value
    if depth >= DEEPEST:
        return "..."
    if isinstance(value, list):
        kept = [shallow(one, depth + 1) for one in value[:MOST]]
        return [*kept, "..."] if len(value) > MOST else kept
    items = islice(value.items(), MOST)
    return {short(name): shallow(one, depth + 1) for name, one in items}
