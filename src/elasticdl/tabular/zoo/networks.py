"""What the built-in models are made of: their parameters, checked, and stacks of layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras

from elasticdl.errors import InvalidValue, nearest

INPUTS = ("linear", "dnn")
UNLISTED = ("name", "trainable", "dtype")
"""Parameters of all Keras models, which no user of a built-in one means."""
ACTIVATION = "leaky_relu"
"""Its gradient is never zero: all units of a narrow layer, such as the 5 of [10, 100, 20, 5], may die with relu."""


def check_network(
    hidden_units: Sequence[int] | int, dropout: float, activation: str, l2: float
) -> dict[str, Any]:
    """The parameters of a stack of layers.

    Raises:
      InvalidValue: one that no network can be made with.
    """
    units = [hidden_units] if isinstance(hidden_units, int) else list(hidden_units)
    if not all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in units):
        raise InvalidValue(
            f"Invalid hidden_units {hidden_units!r}: give a list of positive whole numbers, for example [64, 32]."
        )
    if not isinstance(dropout, int | float) or not 0 <= dropout < 1:
        raise InvalidValue(
            f"Invalid dropout {dropout!r}: give a number from 0 up to 1, for example 0.2."
        )
    if not isinstance(l2, int | float) or l2 < 0:
        raise InvalidValue(
            f"Invalid l2 {l2!r}: give a number that is not negative, for example 0.001."
        )
    check_name("activation", activation, keras.activations)
    return {"hidden_units": units, "dropout": dropout, "activation": activation, "l2": l2}


def check_optimizer(learning_rate: float, optimizer: str) -> dict[str, Any]:
    """The parameters of an optimizer."""
    if not isinstance(learning_rate, int | float) or not learning_rate > 0:
        raise InvalidValue(
            f"Invalid learning_rate {learning_rate!r}: give a positive number, for example 0.01."
        )
    check_name("optimizer", optimizer, keras.optimizers)
    return {"learning_rate": float(learning_rate), "optimizer": optimizer}


def check_name(what: str, name: Any, module: Any) -> None:
    """Refuse a name that Keras does not know."""
    try:
        if isinstance(name, str) and name:
            module.get(name)
            return
    except ValueError:
        pass
    known = [
        one for one in vars(module) if not one.startswith("_") and callable(getattr(module, one))
    ]
    rest = ("get", "serialize", "deserialize", "Optimizer", "LossScaleOptimizer")
    known = [one for one in known if one not in rest]
    raise InvalidValue(f"Keras has no {what} {name!r}. {nearest(str(name), known)}")


def make_optimizer(params: Mapping[str, Any]) -> keras.optimizers.Optimizer:
    """The optimizer of a name, at a learning rate."""
    optimizer = keras.optimizers.get(params["optimizer"])
    optimizer.learning_rate = params["learning_rate"]
    return optimizer


def hidden_layers(params: Mapping[str, Any], batch_norm: bool) -> list[keras.layers.Layer]:
    """Dense layers, with what is to come after each of them."""
    layers: list[keras.layers.Layer] = []
    for place, units in enumerate(params["hidden_units"]):
        layers.append(dense(units, params["l2"], f"hidden_{place}"))
        if batch_norm:
            layers.append(keras.layers.BatchNormalization(name=f"norm_{place}"))
        layers.append(keras.layers.Activation(params["activation"], name=f"activation_{place}"))
        if params["dropout"]:
            layers.append(keras.layers.Dropout(params["dropout"], name=f"dropout_{place}"))
    return layers


def dense(units: int, l2: float, name: str, activation: str | None = None) -> keras.layers.Dense:
    """One dense layer."""
    penalty = keras.regularizers.L2(l2) if l2 else None
    return keras.layers.Dense(units, activation, kernel_regularizer=penalty, name=name)


def one_matrix(inputs: Any) -> Any:
    """The input of a model that has one, also where the columns are for several."""
    if not isinstance(inputs, Mapping):
        return inputs
    parts = list(inputs.values())
    return keras.ops.concatenate(parts, axis=-1) if len(parts) > 1 else parts[0]


def wide_and_deep(inputs: Any) -> tuple[Any, Any]:
    """The inputs of the two parts: a matrix for each, or one for both."""
    if not isinstance(inputs, Mapping):
        return inputs, inputs
    if set(inputs) != set(INPUTS):
        strange = next((name for name in inputs if name not in INPUTS), None)
        known = f"{nearest(str(strange), INPUTS)}" if strange else "Give columns FOR both of them."
        raise InvalidValue(
            f"A WideAndDeep model has the inputs linear and dnn, not {list(inputs)}. {known}"
        )
    return inputs["linear"], inputs["dnn"]
