"""The evaluator's functions by name, in whichever shape `get_eval_funcs` gives them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from elasticdl.errors import ContractError
from elasticdl.experiments.theirs import call, file_of

__all__ = ["check_takes_two", "named_functions"]


def named_functions(evaluator: Any) -> dict[str, Callable[[Any, Any], Any]] | None:
    """A dict, a list of objects with `.name` and `.get_func()`, a list of functions, or None.

    A function, or the object that it comes from, may say by `higher_is_better` which values are the worst: the
    functions that are returned say it too.

    Raises `ContractError` for anything else, and for a name that two functions share.
    """
    returned = call(evaluator.get_eval_funcs)
    if returned is None:
        return None
    functions: dict[str, Callable[[Any, Any], Any]] = {}
    for name, function, item in _pairs(evaluator, returned):
        if not callable(function):
            raise _refused(evaluator, f"{function!r} as the function {name!r}")
        if name in functions:
            raise _refused(evaluator, f"two functions named {name!r}")
        better = getattr(item, "higher_is_better", None)
        if not isinstance(better, bool | None):
            raise ContractError(
                f"The evaluation function {name!r} has {better!r} as higher_is_better. Set it to True or False."
            )
        functions[name] = function if item is function else _saying(function, better)
    return functions or None


def check_takes_two(name: str, function: Callable[..., Any]) -> None:
    """Refuse a function that cannot be called with (y_true, y_pred)."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # one that is not written in Python
        return
    try:
        signature.bind(None, None)
    except TypeError:
        raise ContractError(
            f"The evaluation function {name!r} is written as {signature}. It is called with (y_true, y_pred) of one "
            "data point."
        ) from None


def _pairs(evaluator: Any, returned: Any) -> Iterator[tuple[str, Any, Any]]:
    """The name, the function, and the object that it comes from, which may be itself."""
    if isinstance(returned, Mapping):
        yield from ((str(name), function, function) for name, function in returned.items())
    elif isinstance(returned, list | tuple):
        yield from (_named(evaluator, item) for item in returned)
    else:
        raise _refused(evaluator, repr(returned))


def _named(evaluator: Any, item: Any) -> tuple[str, Any, Any]:
    get = getattr(item, "get_func", None)
    if get is not None:
        name = getattr(item, "name", None) or type(item).__name__
        return str(call(name) if callable(name) else name), call(get), item
    name = getattr(item, "__name__", None)
    if name is None or not callable(item):
        raise _refused(evaluator, f"a list with {item!r} in it")
    return str(name), item, item


def _saying(function: Callable[[Any, Any], Any], better: bool | None) -> Callable[[Any, Any], Any]:
    """The user's function stays as it is, as do the tracebacks of what it raises."""
    if better is None:
        return function
    partial = functools.partial(function)
    partial.higher_is_better = better  # type: ignore[attr-defined]
    return partial


def _refused(evaluator: Any, what: str) -> ContractError:
    cls = type(evaluator)
    return ContractError(
        f"{cls.__name__}.get_eval_funcs ({file_of(cls)}) returned {what}. Return a dict of functions "
        "f(y_true, y_pred) by their names, a list of EvalFunc, or None."
    )
