"""Binding a user's function: which parameter gets what, by its name, else by its place."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

from elasticdl.errors import ContractError, InvalidValue, nearest

__all__ = [
    "Bound",
    "Role",
    "bind",
    "check_params",
    "code_of",
    "describe",
    "nested_codes",
    "parameters",
    "takes",
]

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True)
class Role:
    """Something to hand over, and the parameter names by which users ask for it.

    One that is `by_name` goes only to a parameter of such a name, never by place.
    """

    name: str
    names: frozenset[str]
    by_name: bool = False

    @classmethod
    def of(cls, name: str, *aliases: str, by_name: bool = False) -> Role:
        return cls(name, frozenset((name, *aliases)), by_name)


@dataclass(frozen=True)
class Bound:
    """A user's function with its parameters assigned: call it with one keyword a role."""

    fn: Callable[..., Any]
    positional: tuple[str, ...]
    keyword: Mapping[str, str]
    """Parameter name to role."""

    def takes(self, role: str) -> bool:
        return role in self.positional or role in self.keyword.values()

    def __call__(self, **values: Any) -> Any:
        args = [values[role] for role in self.positional]
        return self.fn(*args, **{name: values[role] for name, role in self.keyword.items()})


def bind(what: str, fn: Callable[..., Any], roles: Sequence[Role]) -> Bound:
    """Assign roles to parameters: by name first, then the rest to required parameters in order.

    Raises `ContractError` when a required parameter is left with nothing to give it.
    """
    signature = parameters(fn)
    in_order = [r.name for r in roles if not r.by_name]
    if signature is None:
        return Bound(fn, tuple(in_order), {})
    plain = [p for p in signature if p.kind not in _VARIADIC]
    if not plain and any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in signature):
        return Bound(fn, tuple(in_order), {})
    assigned = {p.name: r.name for p in plain for r in roles if p.name in r.names}
    _drop_duplicates(assigned)
    left = [role for role in in_order if role not in assigned.values()]
    for p in plain:
        if p.name in assigned or p.default is not p.empty:
            continue
        if not left:
            raise ContractError(
                f"{describe(what, fn)} has a parameter {p.name!r} that nothing is known for: "
                f"it can take {_list(in_order)}. Give {p.name!r} a default or take it out."
            )
        assigned[p.name] = left.pop(0)
    return _split(fn, plain, assigned)


def _drop_duplicates(assigned: dict[str, str]) -> None:
    """A role that two names ask for is told apart by place instead."""
    roles = list(assigned.values())
    for name in [n for n, role in assigned.items() if roles.count(role) > 1]:
        del assigned[name]


def _split(
    fn: Callable[..., Any], plain: Sequence[inspect.Parameter], assigned: Mapping[str, str]
) -> Bound:
    positional = []
    keyword = {}
    for p in plain:
        if p.name not in assigned:
            continue
        if p.kind is inspect.Parameter.POSITIONAL_ONLY:
            positional.append(assigned[p.name])
        else:
            keyword[p.name] = assigned[p.name]
    return Bound(fn, tuple(positional), keyword)


def _list(names: Sequence[str]) -> str:
    return ", ".join(names)


def parameters(fn: Callable[..., Any]) -> list[inspect.Parameter] | None:
    """A callable's parameters; None when Python cannot tell (some built-ins)."""
    try:
        return list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        return None


def takes(fn: Callable[..., Any], name: str, *, explicitly: bool = False) -> bool:
    """Whether a callable accepts this keyword; `explicitly`: not only through `**kwargs`."""
    found = parameters(fn) or []
    if any(p.name == name and p.kind not in _VARIADIC for p in found):
        return True
    return not explicitly and any(p.kind is inspect.Parameter.VAR_KEYWORD for p in found)


def check_params(what: str, fn: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Raise `InvalidValue` unless a factory or constructor can be called with these parameters.

    Those that its attribute `unlisted` names are not told of: they are set by others than the user.
    """
    found = parameters(fn)
    if found is None:
        return
    unlisted = getattr(fn, "unlisted", ())
    known = [p.name for p in found if p.kind not in _VARIADIC and p.name not in unlisted]
    for name in given:
        if not takes(fn, name):
            advice = nearest(name, known) or "It takes none."
            raise InvalidValue(f"{what} takes no parameter {name!r}. {advice}")
    missing = [
        p.name
        for p in found
        if p.kind not in _VARIADIC and p.default is p.empty and p.name not in given
    ]
    if missing:
        raise InvalidValue(
            f"{what} needs the parameter {missing[0]!r}. Give it in model_params, for example "
            f"--model_params={missing[0]}=..."
        )


def describe(what: str, fn: Callable[..., Any]) -> str:
    """`loss(a, b) in mnist/model.py, line 3`, for messages."""
    code = code_of(fn)
    if code is None:
        return what
    try:
        shown = f"{getattr(fn, '__name__', what)}{inspect.signature(fn)}"
    except (TypeError, ValueError):
        shown = what
    return f"{what}: {shown} ({code.co_filename}, line {code.co_firstlineno})"


def code_of(fn: Any) -> CodeType | None:
    """The code object below partials, methods, decorators and callable objects."""
    fn = inspect.unwrap(fn)
    if isinstance(fn, functools.partial):
        return code_of(fn.func)
    fn = getattr(fn, "__func__", fn)
    code = getattr(fn, "__code__", None)
    if code is None and not isinstance(fn, type) and callable(fn):
        code = getattr(inspect.getattr_static(type(fn), "__call__"), "__code__", None)
    return code if isinstance(code, CodeType) else None


def nested_codes(code: CodeType) -> Iterator[CodeType]:
    """A code object and all those of the functions written inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested_codes(constant)
