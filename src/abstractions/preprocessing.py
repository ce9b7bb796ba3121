"""`PreprocessorBase`: data points made fit for the model, and batches made of them."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from typing import Any

from abstractions.base_class import BaseClass

__all__ = ["PreprocessorBase"]


class _OfSteps(ABCMeta):
    """A class with an `add_preprocess` of its own need not have the steps."""

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        super().__init__(name, bases, namespace)
        own = next((base for base in cls.__mro__ if "add_preprocess" in vars(base)), None)
        if own is not None and own.__module__ != __name__:
            cls.__abstractmethods__ = frozenset()


class PreprocessorBase(BaseClass, metaclass=_OfSteps):
    """Preprocesses data points and makes batches of them: for training, validation and test data.

    Write the five abstract methods; or override `add_preprocess` when they do not fit.
    """

    @abstractmethod
    def image_preprocess(self, image: Any) -> Any:
        """One input, made fit for the model."""

    @abstractmethod
    def label_preprocess(self, label: Any) -> Any:
        """One label, made fit for the loss."""

    def weight_preprocess(self, weight: Any) -> Any:
        """One sample weight. As it is, unless overridden."""
        return weight

    @abstractmethod
    def add_image_preprocess(self, generator: Any) -> Any:
        """A generator whose inputs went through `image_preprocess`."""

    @abstractmethod
    def add_label_preprocess(self, generator: Any) -> Any:
        """A generator whose labels went through `label_preprocess`."""

    def add_weight_preprocess(self, generator: Any) -> Any:
        """A generator whose sample weights went through `weight_preprocess`. As it is, unless overridden."""
        return generator

    @abstractmethod
    def batchify(self, generator: Any, n_data_points: int) -> tuple[Any, int]:
        """A generator of batches, and how many of them hold all data points once."""

    def add_preprocess(self, generator: Any, n_data_points: int) -> tuple[Any, int]:
        """All steps: a generator of batches, and how many of them hold all data points once."""
        generator = self.add_image_preprocess(generator)
        generator = self.add_label_preprocess(generator)
        generator = self.add_weight_preprocess(generator)
        return self.batchify(generator, n_data_points)
