"""`wrap`: Keras' own preprocessing in front of a model, so that what is saved takes the raw columns of a table."""

from __future__ import annotations

import keyword
import re
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from elasticdl.errors import ContractError, reason
from elasticdl.tabular.category_layers import Categories
from elasticdl.tabular.number_layers import calendar, flag, numbers, vector
from elasticdl.tabular.plan import Feature, FeaturePlan

if TYPE_CHECKING:
    import keras

__all__ = ["wrap"]


def wrap(build: Callable[[], keras.Model], plan: FeaturePlan) -> keras.Model:
    """A functional model of raw columns: a dict of one tensor [batch] a column in, the inner model's output out.

    The inner model gets a float32 matrix [batch, n], or a dict of them when the plan has several targets. Layers
    have the same names each time. An input is called as its column where TensorFlow allows it, and else by a
    similar name; the keys of the dict are the columns always. Columns of float64 are best given as tensors or by a
    dataset: Keras' `fit` and `predict` round arrays of them to float32 before any layer sees them.

    Raises:
      ContractError: the inner model does not take such an input.
    """
    import keras

    names = _safe_names([column.name for column in plan.columns])
    inputs = {
        column.name: keras.Input(shape=(), name=name, dtype=column.dtype)
        for column, name in zip(plan.columns, names, strict=True)
    }
    matrices = {target: _matrix(plan, target, inputs) for target in plan.targets}
    model = build()
    features = matrices if len(matrices) > 1 else next(iter(matrices.values()))
    try:
        outputs = model(features)
    except (ValueError, TypeError) as error:
        raise _refused(model, features, error) from error
    with warnings.catch_warnings():
        # An input has another name than its column where that is no name for TensorFlow.
        warnings.filterwarnings("ignore", message="When providing `inputs` as a dict")
        return keras.Model(inputs, outputs, name="table_model")


def _matrix(plan: FeaturePlan, target: str | None, inputs: dict[str, Any]) -> Any:
    from keras import ops

    features = [feature for feature in plan.features if feature.target == target]
    prefix = f"{re.sub('[^A-Za-z0-9_]', '_', target)}_" if target else ""
    categories = Categories(inputs)
    pieces = numbers([f for f in features if f.kind == "number"], inputs, f"{prefix}normalise")
    for place, feature in enumerate(features):
        if feature.kind != "number":
            pieces += _pieces(feature, inputs, categories, f"{prefix}feature_{place}")
    return ops.concatenate(pieces, axis=-1) if len(pieces) > 1 else pieces[0]


def _pieces(
    feature: Feature, inputs: dict[str, Any], categories: Categories, name: str
) -> list[Any]:
    if feature.kind == "flag":
        return flag(feature, inputs)
    if feature.kind == "time":
        return calendar(feature, inputs)
    if feature.kind == "vector":
        return vector(feature, inputs, name)
    return [categories.encoded(feature, name)]


def _refused(model: Any, features: Any, error: Exception) -> ContractError:
    given = (
        {name: list(one.shape) for name, one in features.items()}
        if isinstance(features, dict)
        else list(features.shape)
    )
    lines = [line for line in reason(error).splitlines() if line.strip()]
    return ContractError(
        f"The model {type(model).__name__} does not take what the columns become, {given}: {lines[0]}. "
        "A model for tables takes one matrix [batch, n], or a dict of them by the names that COLUMN ... FOR gives."
    )


def _safe_names(columns: Sequence[str]) -> list[str]:
    """Names that a SavedModel's signature takes: they are parameters of a function."""
    taken = {name for name in columns if _is_safe(name)}
    names = []
    for column in columns:
        if _is_safe(column):
            names.append(column)
            continue
        base = f"column_{re.sub('[^A-Za-z0-9]+', '_', column).strip('_')}".rstrip("_")
        name, number = base, 2
        while name in taken:
            name, number = f"{base}_{number}", number + 1
        taken.add(name)
        names.append(name)
    return names


def _is_safe(name: str) -> bool:
    return re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name) is not None and not keyword.iskeyword(name)
