"""`DataLoaderBase`: where data points come from."""

from __future__ import annotations

import os
import pathlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from abstractions.base_class import BaseClass
from elasticdl.experiments.struct import ConfigStruct

__all__ = ["DataLoaderBase"]


class DataLoaderBase(BaseClass, ABC):
    """Makes the generators of data points.

    Each `create_..._generator` returns a generator, or a `tf.data.Dataset`, and the number of data points.
    Training and validation data yield (x, y, sample weight), test data (x, y, data id). Only training data
    is to be shuffled.

    Args:
      config: the run's config, or None.
      data_dir: the directory of the data; the config's `data_dir` by default. `self.data_dir` is a
        `pathlib.Path`, or a `UPath` when it is an address.
    """

    def __init__(
        self,
        config: ConfigStruct | Mapping[str, Any] | None = None,
        data_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        if data_dir is None and config is not None:
            data_dir = config.get("data_dir")
        # Before the parameters are loaded, which may look into the directory.
        self.data_dir: Any = None if data_dir is None else _path(data_dir)
        super().__init__(config)

    @abstractmethod
    def create_training_generator(self) -> tuple[Any, int]:
        """The training data: (generator of (x, y, sample weight), number of data points)."""

    @abstractmethod
    def create_validation_generator(self) -> tuple[Any, int]:
        """The validation data: (generator of (x, y, sample weight), number of data points)."""

    @abstractmethod
    def create_test_generator(self) -> tuple[Any, int]:
        """The test data: (generator of (x, y, data id), number of data points)."""

    def get_validation_index(self) -> Any:
        """The ids of the validation data points in their order, for the report; None: their numbers."""
        return None


def _path(data_dir: str | os.PathLike[str]) -> Any:
    if "://" not in str(data_dir):
        return pathlib.Path(data_dir)
    from elasticdl.storage import place

    return place(data_dir)
