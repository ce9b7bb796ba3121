"""A user's optimizer: a function, a Keras optimizer or its name, made afresh for each model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from elasticdl.contract.bind import check_params, describe
from elasticdl.contract.keras_names import keras_names
from elasticdl.contract.legacy import is_old_optimizer, to_keras
from elasticdl.errors import ContractError, UnknownName, nearest

if TYPE_CHECKING:
    import keras

__all__ = ["bind_optimizer"]

_ADVICE = "Return a Keras optimizer, for example tf.keras.optimizers.SGD(0.1)."


def bind_optimizer(
    optimizer: Any, params: Mapping[str, Any]
) -> Callable[[], keras.optimizers.Optimizer]:
    """A function that makes the optimizer. `params` holds the learning rate, if one was given."""
    import keras

    if isinstance(optimizer, str):
        _named(optimizer, params)
        return lambda: _named(optimizer, params)
    if isinstance(optimizer, keras.optimizers.Optimizer):
        return lambda: _unused(optimizer)
    if is_old_optimizer(optimizer):
        return lambda: to_keras(optimizer)
    if not callable(optimizer):
        raise ContractError(
            f"The optimizer is {optimizer!r} ({type(optimizer).__name__}). {_ADVICE}"
        )
    check_params(describe("optimizer", optimizer), optimizer, params)
    return lambda: _returned(optimizer, optimizer(**params))


def _returned(fn: Callable[..., Any], value: Any) -> keras.optimizers.Optimizer:
    import keras

    if isinstance(value, str):
        return _named(value, {})
    if isinstance(value, keras.optimizers.Optimizer):
        return _unused(value)
    if is_old_optimizer(value):
        return to_keras(value)
    raise ContractError(
        f"{describe('optimizer', fn)} returned {value!r} ({type(value).__name__}). {_ADVICE}"
    )


def _unused(optimizer: keras.optimizers.Optimizer) -> keras.optimizers.Optimizer:
    """The optimizer itself, or its copy when another model's variables are in it already."""
    if not optimizer.built:
        return optimizer
    return type(optimizer).from_config(optimizer.get_config())


def _named(name: str, params: Mapping[str, Any]) -> keras.optimizers.Optimizer:
    import keras

    try:
        return keras.optimizers.get({"class_name": name, "config": dict(params)})
    except ValueError:
        known = nearest(name, keras_names("optimizers"))
        raise UnknownName(f"Keras has no optimizer {name!r}. {known}") from None
