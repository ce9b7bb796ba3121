"""`ModelBuilderBase` for Keras models, `GenericModelBuilderBase` for those that fit themselves."""

from __future__ import annotations

import os
import pathlib
import sys
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from abstractions.base_class import BaseClass

if TYPE_CHECKING:
    import keras

__all__ = ["GenericModelBuilderBase", "ModelBuilderBase"]


class ModelBuilderBase(BaseClass, ABC):
    """Builds the compiled Keras model that is trained."""

    @abstractmethod
    def get_compiled_model(self) -> keras.Model:
        """A model that was compiled with its optimizer, loss and metrics."""

    def get_callbacks(self) -> list[Any]:
        """Keras callbacks of your own. Checkpoints, TensorBoard and MLflow are there without them."""
        return []

    def get_class_weight(self) -> dict[int, float] | None:
        """The weight of each class in the training loss; None: all the same."""
        return None

    def load(self, path: str | os.PathLike[str]) -> keras.Model:
        """An exported model: of `runs/<run>/exported`, or of a `.keras` file."""
        from elasticdl.artifacts.bare_model import load_bare_model
        from elasticdl.errors import NotFound
        from elasticdl.quiet import load_tensorflow

        where = pathlib.Path(path)
        if not where.exists():
            raise NotFound(f"There is no exported model {where}. Give runs/RUN_NAME/exported.")
        load_tensorflow()
        import keras

        # A Keras file names classes; those of the builder's own file are the ones that it means.
        own = vars(sys.modules[type(self).__module__])
        named = {n: v for n, v in own.items() if isinstance(v, type) or callable(v)}
        with keras.saving.custom_object_scope(named):
            return load_bare_model(where)


class GenericModelBuilderBase(BaseClass, ABC):
    """Fits a model that is not Keras', such as one of scikit-learn."""

    @abstractmethod
    def fit(
        self, train_data_gen: Any, n_iter_train: int, val_data_gen: Any, n_iter_val: int
    ) -> Any:
        """Fit a model on `n_iter_train` batches (x, y, sample weight) and return it.

        What is returned has `predict`, and perhaps `predict_proba`.
        """

    def evaluate(self, data_gen: Any, n_iter: int) -> dict[str, float]:
        """Metrics of the fitted model on `n_iter` batches. None, unless overridden."""
        return {}

    def load(self, path: str | os.PathLike[str]) -> Any:
        """The fitted model of `runs/<run>/exported`."""
        from elasticdl.experiments.estimators import load_estimator

        return load_estimator(pathlib.Path(path))
