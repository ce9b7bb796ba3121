"""How a minibatch's features reach the model, whatever form each of them has."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from elasticdl.engine.explain import calling_model
from elasticdl.errors import ContractError, DataError

if TYPE_CHECKING:
    import keras
    import tensorflow as tf

__all__ = ["Minibatch", "bind_features", "num_examples", "split_minibatch"]

Bind = Callable[[Any], Any]


class Minibatch(tuple[Any, Any, Any]):
    """(features, labels, sample_weight); what is absent is None."""

    @property
    def features(self) -> Any:
        return self[0]

    @property
    def labels(self) -> Any:
        return self[1]

    @property
    def weights(self) -> Any:
        return self[2]


def split_minibatch(element: Any) -> Minibatch:
    """Name the parts of what the dataset yields."""
    if isinstance(element, tuple) and len(element) == 2:
        return Minibatch((element[0], element[1], None))
    if isinstance(element, tuple) and len(element) == 3:
        return Minibatch(element)
    raise DataError(
        "The dataset must yield (features, labels) or (features, labels, sample_weight) for training and "
        f"evaluation; it yields {_describe(element)}. Look at what the dataset function returns."
    )


def num_examples(tensors: Any) -> tf.Tensor:
    """The number of rows of a minibatch, also of ragged and sparse ones."""
    import tensorflow as tf

    first = next(t for t in tf.nest.flatten(tensors) if t is not None)
    if isinstance(first, tf.RaggedTensor):
        return tf.cast(first.nrows(), tf.int32)
    if isinstance(first, tf.SparseTensor):
        return tf.cast(first.dense_shape[0], tf.int32)
    return tf.shape(first)[0]


def bind_features(model: keras.Model, features: Any) -> Bind:
    """Decide, on a first minibatch, how features go into the model. Also builds the model.

    One feature goes in bare, since the model's input need not have its name. A subclassed model may
    expect the dict all the same: it is tried second.
    """
    if not isinstance(features, dict):
        return _tried(model, features, _as_is)
    if names := _input_names(model):
        if len(features) == len(names) == 1 and not _takes_dict(model):
            return _tried(model, features, _only)
        as_dict = len(names) > 1 or _takes_dict(model)
        return _tried(model, features, _by_name(names, features, as_dict=as_dict))
    if len(features) > 1:
        return _tried(model, features, _as_is)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Keras warns of each failing try at length
        try:
            return _tried(model, features, _only)
        except Exception as bare:
            try:
                return _tried(model, features, _as_is)
            except Exception as mapped:
                # The error that counts is the one of the form that the model was written for.
                raise (mapped if _looks_up_by_key(bare, features) else bare) from None


def _tried(model: keras.Model, features: Any, bind: Bind) -> Bind:
    with calling_model(features):
        model(bind(features), training=False)
    return bind


def _looks_up_by_key(error: Exception, features: dict[str, Any]) -> bool:
    (key,) = features
    return "indices" in str(error) and repr(key) in str(error)


def _as_is(features: Any) -> Any:
    return features


def _only(features: dict[str, Any]) -> Any:
    (value,) = features.values()
    return value


def _by_name(names: list[str], features: dict[str, Any], *, as_dict: bool) -> Bind:
    missing = [name for name in names if name not in features]
    if missing:
        raise ContractError(
            f"The model's inputs are {', '.join(names)}, but the dataset yields the features "
            f"{', '.join(features)}: {', '.join(missing)} is missing. Name the inputs like the features."
        )
    if not as_dict:
        return lambda given: given[names[0]]
    return lambda given: {name: given[name] for name in names}


def _input_names(model: keras.Model) -> list[str]:
    """The names of a functional or sequential model's inputs; none for a subclassed one."""
    inputs = getattr(model, "inputs", None)
    if not inputs:
        return []
    return list(model.input) if _takes_dict(model) else [tensor.name for tensor in inputs]


def _takes_dict(model: keras.Model) -> bool:
    """Whether a model that has inputs was made with a dict of them."""
    return isinstance(getattr(model, "input", None), dict)


def _describe(element: Any) -> str:
    if isinstance(element, tuple):
        return f"a tuple of {len(element)}"
    if isinstance(element, dict):
        return f"a dict of {', '.join(map(str, element))}"
    return f"a single {type(element).__name__}"
