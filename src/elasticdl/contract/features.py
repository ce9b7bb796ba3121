"""The form in which features reach the model: a single one goes in bare unless it is asked by key.

The seeds hand `{"image": ...}` to models that reshape their `inputs`; Keras 3 does not unpack that.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from elasticdl.contract.bind import nested_codes

if TYPE_CHECKING:
    import keras
    import tensorflow as tf

__all__ = ["bare_single_feature", "features_only"]


def bare_single_feature(
    dataset: tf.data.Dataset, look: Callable[[], keras.Model]
) -> tf.data.Dataset:
    """The dataset with a one-key dict of features replaced by its value, if the model wants it."""
    element = dataset.element_spec
    features = element[0] if isinstance(element, tuple) else element
    if not isinstance(features, dict) or len(features) != 1:
        return dataset
    (key,) = features
    if _wants_dict(look(), key):
        return dataset
    if not isinstance(element, tuple):
        return dataset.map(lambda x: x[key])
    return dataset.map(lambda x, *rest: (x[key], *rest))


def features_only(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """A dataset for prediction: of (features, labels) only the features."""
    if isinstance(dataset.element_spec, tuple):
        return dataset.map(lambda x, *rest: x)
    return dataset


def _wants_dict(model: keras.Model, key: str) -> bool:
    import keras

    if getattr(model, "inputs", None) and not isinstance(model, keras.Sequential):
        return isinstance(model.input, dict)
    if isinstance(model, keras.utils.FeatureSpace):
        return True
    if any(_is_or_holds(value, key) for value in vars(model).values()):
        return True
    if any(key in constants for constants in _own_constants(type(model))):
        return True
    return any(_wants_dict(layer, key) for layer in getattr(model, "layers", ()))


def _is_or_holds(value: Any, key: str) -> bool:
    if isinstance(value, str):
        return False  # a `name` that happens to be the key says nothing
    return isinstance(value, list | tuple) and key in [v for v in value if isinstance(v, str)]


def _own_constants(cls: type) -> Iterator[set[Any]]:
    """The strings, and the global strings, that the methods of the user's classes mention."""
    for base in cls.__mro__:
        if base.__module__.partition(".")[0] in ("keras", "tensorflow", "builtins"):
            continue
        for method in vars(base).values():
            function = inspect.unwrap(getattr(method, "__func__", method))
            if inspect.isfunction(function) and function.__name__ != "__init__":
                yield _mentions(function)


def _mentions(function: Any) -> set[Any]:
    found: set[Any] = set()
    for code in nested_codes(function.__code__):
        found.update(c for c in code.co_consts if isinstance(c, str))
        globals_ = (function.__globals__.get(name) for name in code.co_names)
        found.update(value for value in globals_ if isinstance(value, str))
    return found
