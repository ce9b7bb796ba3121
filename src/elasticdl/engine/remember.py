"""What an object remembers in plain attributes: numbers, texts, arrays, variables, and collections of them.

Functions of `keras.ops` are plain too: a Keras callback keeps how it compares (`ops.less`) beside a margin whose
sign goes with it.
"""

from __future__ import annotations

from collections import deque
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
        _set(owner, name, _decode(value, arrays))


def _set(owner: Any, name: str, value: Any) -> None:
    """Into what is there where it can be filled: others may hold it, or it is of a kind of its own."""
    held: Any = getattr(owner, name, None)
    if hasattr(held, "assign"):
        held.assign(value)
    elif isinstance(held, dict | set) and isinstance(value, dict | set):
        held.clear()
        held.update(value)
    elif isinstance(held, deque) and isinstance(value, list):
        held.clear()
        held.extend(value)
    elif isinstance(held, list) and isinstance(value, list):
        held[:] = value
    else:
        setattr(owner, name, value)


def _encode(value: Any, name: str, arrays: dict[str, Any]) -> Any:
    import keras
    import numpy as np

    if value is None or isinstance(value, bool | int | float | str):
        return value
    if hasattr(value, "assign") and hasattr(value, "numpy"):  # a variable
        value = np.asarray(value.numpy())
    if isinstance(value, np.generic | np.ndarray):
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            raise TypeError(name)
        arrays[name] = np.array(array)
        return {"array": name, "scalar": isinstance(value, np.generic)}
    operation = str(getattr(value, "__name__", ""))
    if callable(value) and getattr(keras.ops, operation, None) is value:
        return {"keras_op": operation}
    if isinstance(value, dict):
        pairs = enumerate(value.items())
        return {"dict": [_encode(list(p), f"{name}/{i}", arrays)["list"] for i, p in pairs]}
    kind = next((kind for kind, types in _SEQUENCES.items() if isinstance(value, types)), None)
    if kind is None:
        raise TypeError(name)
    return {kind: [_encode(v, f"{name}/{i}", arrays) for i, v in enumerate(value)]}


_SEQUENCES: dict[str, tuple[type, ...]] = {
    "list": (list, deque),
    "tuple": (tuple,),
    "set": (set, frozenset),
}


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
        return {_decode(key, arrays): _decode(inner, arrays) for key, inner in content}
    make = {"list": list, "tuple": tuple, "set": set}[kind]
    return make(_decode(inner, arrays) for inner in content)
