"""What others wrote may be of any size: what is told of it is not. Pure."""

from __future__ import annotations

from itertools import islice
from typing import Any

__all__ = ["fits", "shallow", "short"]

LONGEST = 4000
MOST = 200
DEEPEST = 6


def short(text: str, most: int = LONGEST) -> str:
    """The text, or its begin.

    >>> short("abcdef", 3)
    'abc ...'
    """
    return text if len(text) <= most else f"{text[:most]} ..."


def fits(value: Any, most: int) -> bool:
    """Whether all of it, written out, has at most about so many characters. A few aliases in YAML can mean terabytes.

    >>> one = ["a"] * 100
    >>> fits(one, 1000), fits([one] * 100, 1000)
    (True, False)
    """
    size, waiting = 0, [value]
    while waiting:
        one = waiting.pop()
        size += 1 + (len(one) if isinstance(one, str | bytes) else 0)
        if size > most:
            return False
        if isinstance(one, dict):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple | set):
            waiting += one
    return True


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
