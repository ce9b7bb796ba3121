"""A Keras class that brings its own `default_input`, `default_loss` and `default_optimizer`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from elasticdl.contract.functions import functions_beside, part_of
from elasticdl.contract.model import Models
from elasticdl.contract.pieces import Pieces

__all__ = ["pieces_of_class"]

_DEFAULTS = {
    "dataset_fn": "default_input",
    "loss": "default_loss",
    "optimizer": "default_optimizer",
    "eval_metrics_fn": "default_metrics",
    "callbacks": "default_callbacks",
}


def pieces_of_class(
    cls: type, module: ModuleType | None, params: Mapping[str, Any], name: str, where: str
) -> Pieces:
    """The parts of a class: its defaults first, then the functions of its module."""
    models = Models(where)
    beside = functions_beside(module) if module is not None else {}
    own = {part: _default(cls, attribute, models) for part, attribute in _DEFAULTS.items()}
    found = beside | {part: value for part, value in own.items() if value is not None}
    return Pieces(
        name=name,
        where=f"the class {cls.__name__} of {where}" if module else where,
        models=models,
        model=cls,
        params=params,
        names=_DEFAULTS,
        **found,
    )


def _default(cls: type, attribute: str, models: Models) -> Any:
    """An attribute of the class; a method that wants `self` is called on the model."""
    written = inspect.getattr_static(cls, attribute, None)
    if (
        inspect.isfunction(written)
        and next(iter(inspect.signature(written).parameters), "") == "self"
    ):
        return _on_model(written, models)
    return part_of(cls, attribute)


def _on_model(method: Callable[..., Any], models: Models) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        return method(models.look(), *args, **kwargs)

    signature = inspect.signature(method)
    rest = list(signature.parameters.values())[1:]
    call.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
    return call
