"""Names of variables that are the same in every process.

Keras numbers the layers of a process as they are made (`dense_7`), so the same model has other names the second
time it is built. Here the numbers are counted anew for each model, in the order of its variables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import keras

__all__ = ["name_variables"]

_NUMBER = re.compile(r"_\d+$")


def name_variables(
    model: keras.Model, optimizer: keras.optimizers.Optimizer | None
) -> dict[str, keras.Variable]:
    """`model/...` and `optimizer/...` names for all variables of both."""
    names = _Names()
    named: dict[str, keras.Variable] = {}
    flat: dict[str, str] = {}
    for variable in model.variables:
        name = names.of(variable.path)
        _add(named, f"model/{name}", variable)
        flat[variable.path.replace("/", "_")] = name.replace("/", "_")
    for path, variable in _unknown_to_keras(model):
        _add(named, f"model/{names.of(path)}", variable)
    for variable in optimizer.variables if optimizer is not None else ():
        _add(named, f"optimizer/{_slot(variable.path, flat)}", variable)
    return named


def _unknown_to_keras(model: keras.Model) -> Iterator[tuple[str, Any]]:
    """Variables of TensorFlow's own in a layer's attributes: Keras neither saves nor lists them."""
    import tensorflow as tf

    for layer in model._flatten_layers():
        for attribute, value in vars(layer).items():
            if isinstance(value, tf.random.Generator):
                value = value.state
            if isinstance(value, tf.Variable):
                yield f"{layer.path}/{attribute}", value


class _Names:
    """Counts each kind of segment anew below its parent."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], str] = {}
        self._taken: set[tuple[str, str]] = set()

    def of(self, path: str) -> str:
        *parents, last = path.split("/")
        parent = ""
        for segment in parents:
            parent = f"{parent}{self._segment(parent, segment)}/"
        return parent + last

    def _segment(self, parent: str, segment: str) -> str:
        if (parent, segment) not in self._known:
            base = name = _NUMBER.sub("", segment)
            number = 1
            while (parent, name) in self._taken:
                name, number = f"{base}_{number}", number + 1
            self._taken.add((parent, name))
            self._known[parent, segment] = name
        return self._known[parent, segment]


def _slot(path: str, flat: dict[str, str]) -> str:
    """An optimizer's variable: Keras writes the variable that it belongs to into its name."""
    last = path.split("/", 1)[-1]
    owner = max((p for p in flat if last.startswith(p)), key=len, default=None)
    return last if owner is None else flat[owner] + last[len(owner) :]


def _add(named: dict[str, Any], name: str, variable: Any) -> None:
    """Keras lets two layers of a subclassed model share a path."""
    key, number = name, 1
    while key in named:
        key, number = f"{name}_{number}", number + 1
    named[key] = variable
