"""`AugmentorBase`: data points changed a little, so that a model learns what does not matter."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from abstractions.base_class import BaseClass

__all__ = ["AugmentorBase"]


class AugmentorBase(BaseClass, ABC):
    """Augments data points; used where the config says `do_train_augmentation: true`."""

    @abstractmethod
    def add_augmentation(self, generator: Any) -> Any:
        """A generator of augmented data points (x, y, sample weight)."""

    def add_validation_augmentation(self, generator: Any) -> Any:
        """The same for validation data, where the config says `do_validation_augmentation: true`."""
        return self.add_augmentation(generator)
