"""The evaluator's functions by name, in whichever shape `get_eval_funcs` gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from elasticdl.errors import ContractError
from elasticdl.experiments.theirs import call, file_of

__all__ = ["named_functions"]


def named_functions(evaluator: Any) -> dict[str, Callable[[Any, Any], Any]] | None:
    """A dict, a list of objects with `.name` and `.get_func()`, a list of functions, or None.

    Raises `ContractError` for anything else, and for a name that two functions share.
    """
    returned = call(evaluator.get_eval_funcs)
    if returned is None:
        return None
    functions: dict[str, Callable[[Any, Any], Any]] = {}
    for name, function in _pairs(evaluator, returned):
        if not callable(function):
            raise _refused(evaluator, f"{function!r} as the function {name!r}")
        if name in functions:
            raise _refused(evaluator, f"two functions named {name!r}")
        functions[name] = function
    return functions or None


def _pairs(evaluator: Any, returned: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(returned, Mapping):
        yield from ((str(name), function) for name, function in returned.items())
    elif isinstance(returned, list | tuple):
        yield from (_named(evaluator, item) for item in returned)
    else:
        raise _refused(evaluator, repr(returned))


def _named(evaluator: Any, item: Any) -> tuple[str, Any]:
    get = getattr(item, "get_func", None)
    if get is not None:
        name = getattr(item, "name", None) or type(item).__name__
        return str(call(name) if callable(name) else name), call(get)
    name = getattr(item, "__name__", None)
    if name is None or not callable(item):
        raise _refused(evaluator, f"a list with {item!r} in it")
    return str(name), item


def _refused(evaluator: Any, what: str) -> ContractError:
    cls = type(evaluator)
    return ContractError(
        f"{cls.__name__}.get_eval_funcs ({file_of(cls)}) returned {what}. Return a dict of functions "
        "f(y_true, y_pred) by their names, a list of EvalFunc, or None."
    )
