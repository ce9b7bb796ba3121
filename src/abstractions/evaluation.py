"""`EvaluatorBase`: what is computed for each data point of the reports."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from abstractions.base_class import BaseClass

__all__ = ["EvalFunc", "EvalFuncs", "EvaluatorBase"]

EvalFuncs = dict[str, Callable[[Any, Any], Any]]
"""Functions f(y_true, y_pred) of one data point, by name."""


class EvalFunc:
    """A function with a name, for `get_eval_funcs`. A subclass may override `get_func`.

    >>> EvalFunc("error", lambda y_true, y_pred: abs(y_true - y_pred)).get_func()(1, 3)
    2
    """

    name: str = ""
    higher_is_better: bool | None = None
    """Whether the worst cases are those with the smallest values; None: the name tells."""

    def __init__(
        self,
        name: str | None = None,
        func: Callable[[Any, Any], Any] | None = None,
        *,
        higher_is_better: bool | None = None,
    ) -> None:
        self.name = name or type(self).name or type(self).__name__
        if higher_is_better is not None:
            self.higher_is_better = higher_is_better
        self._func = func

    def get_func(self) -> Callable[[Any, Any], Any]:
        """The function f(y_true, y_pred)."""
        if self._func is None:
            raise TypeError(f"{self.name} has no function. Give one, or override get_func.")
        return self._func


class EvaluatorBase(BaseClass, ABC):
    """Names the functions that are computed for each data point."""

    @abstractmethod
    def get_eval_funcs(
        self,
    ) -> Mapping[str, Callable[[Any, Any], Any]] | Sequence[Any] | None:
        """Functions f(y_true, y_pred) of one data point, never of a batch, by their names.

        A list of `EvalFunc`, or of plain functions, will do. One with `higher_is_better = False` has its
        worst cases at the largest values. None: only what the model's own metrics say.
        """
