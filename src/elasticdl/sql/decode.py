"""A model's outputs as the values of a label: numbers, or classes by name with their probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elasticdl.errors import ContractError
from elasticdl.tabular.plan import FeaturePlan, Label

__all__ = ["Decoder", "class_probabilities"]


class Decoder:
    """Makes the columns of predictions.

    Args:
      plan: of the model.
      column: what the predicted label is called.
      probabilities: whether there is a column `probability_<class>` for each class too.
    """

    def __init__(self, plan: FeaturePlan, column: str, *, probabilities: bool) -> None:
        assert plan.label is not None
        self._label = plan.label
        self._probabilities = probabilities and bool(plan.label.classes)
        self.fields = [pa.field(column, _type(plan.label))]
        if self._probabilities:
            self.fields += [
                pa.field(f"probability_{_written(one)}", pa.float32()) for one in plan.label.classes
            ]

    def decode(self, predicted: pa.Array) -> list[pa.Array]:
        """One array for each field."""
        values = matrix(predicted)
        if not self._label.classes:
            return [pa.array(values[:, 0].astype(np.float64))]
        probabilities = class_probabilities(values, self._label)
        classes = pa.array(list(self._label.classes), self.fields[0].type)
        chosen = classes.take(pa.array(probabilities.argmax(1)))
        if not self._probabilities:
            return [chosen]
        return [chosen, *(pa.array(probabilities[:, i]) for i in range(len(self._label.classes)))]


def matrix(predicted: pa.Array) -> NDArray[Any]:
    """Outputs as [rows, outputs]."""
    type_ = predicted.type
    if pa.types.is_fixed_size_list(type_):
        flat = predicted.flatten().to_numpy(zero_copy_only=False)
        return np.asarray(flat).reshape(len(predicted), type_.list_size)
    return np.asarray(predicted.to_numpy(zero_copy_only=False)).reshape(len(predicted), 1)


def class_probabilities(values: NDArray[Any], label: Label) -> NDArray[np.float32]:
    """Outputs of any classifier: probabilities as they are, other numbers as logits; one for two classes."""
    values = values.astype(np.float32)
    if values.shape[1] == 1 and len(label.classes) == 2:
        one = values[:, 0]
        if one.min(initial=0) < 0 or one.max(initial=0) > 1:
            one = 1 / (1 + np.exp(-one))
        return np.stack([1 - one, one], 1)
    if values.shape[1] != len(label.classes):
        raise ContractError(
            f"The model puts out {values.shape[1]} numbers a row, and {label.name} has {len(label.classes)} classes. "
            "Give it an output for each class."
        )
    if values.min(initial=0) < 0 or not np.allclose(values.sum(1), 1, atol=1e-3):
        shifted = np.exp(values - values.max(1, keepdims=True))
        values = shifted / shifted.sum(1, keepdims=True)
    return values


def _type(label: Label) -> pa.DataType:
    if not label.classes:
        return pa.float64()
    kind = type(label.classes[0])
    return {bool: pa.bool_(), int: pa.int64(), float: pa.float64()}.get(kind, pa.string())


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
