"""What an object remembers in plain attributes: numbers, texts, arrays, and lists and dicts of them.

Functions of `keras.ops` are plain too: a Keras callback keeps how it compares (`ops.less`) beside a margin whose
sign goes with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["plain_attributes", "set_plain_attributes"]

_SKIPPED = ("_model", "params", "validation_data")


def plain_attributes(owner: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The plain values of an object's attributes as JSON, and the arrays among them by name.

    An attribute of any other kind (a function, an open file, a layer) is left out.
    """
    values: dict[str, Any] = {}
    arrays: dict[str, Any] = {}
    for name, value in vars(owner).items():
        if name in _SKIPPED:
            continue
        found: dict[str, Any] = {}
        try:
            values[name] = _encode(value, name, found)
        except TypeError:
            continue
        arrays |= found
    return values, arrays


def set_plain_attributes(owner: Any, values: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Give an object back what `plain_attributes` found."""
    for name, value in values.items():
        setattr(owner, name, _decode(value, arrays))


def _encode(value: Any, name: str, arrays: dict[str, Any]) -> Any:
    import keras
    import numpy as np

    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic | np.ndarray):
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            raise TypeError(name)
        arrays[name] = np.array(array)
        return {"array": name, "scalar": isinstance(value, np.generic)}
    operation = str(getattr(value, "__name__", ""))
    if callable(value) and getattr(keras.ops, operation, None) is value:
        return {"keras_op": operation}
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_encode(v, f"{name}/{i}", arrays) for i, v in enumerate(value)]}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {k: _encode(v, f"{name}/{k}", arrays) for k, v in value.items()}}
    raise TypeError(name)


def _decode(value: Any, arrays: Mapping[str, Any]) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, content),) = [item for item in value.items() if item[0] != "scalar"]
    if kind == "array":
        return arrays[content][()] if value["scalar"] else arrays[content]
    if kind == "keras_op":
        import keras

        return getattr(keras.ops, content)
    if kind == "dict":
        return {key: _decode(inner, arrays) for key, inner in content.items()}
    return (list if kind == "list" else tuple)(_decode(inner, arrays) for inner in content)
