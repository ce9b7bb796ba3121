"""The SavedModel: the model's inference as a graph, which TensorFlow alone loads and runs.

Keras' own `export` calls the model without saying that it does not train, which leaves layers such as
RandomFlip switched on. Here the caller gives the function to export.
"""

from __future__ import annotations

import errno
import keyword
import logging
import re
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elasticdl.errors import reason

if TYPE_CHECKING:
    import keras
    import tensorflow as tf

__all__ = ["Signature", "export_saved_model", "feature_names", "quiet_saving"]

Signature = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""{"inputs": {name: {"dtype": "float32", "shape": [None, 4]}}, "outputs": {...}}"""

_UNNAMED = re.compile(r"(input_layer|keras_tensor|input)(_\d+)?")
"""What Keras calls an input that nobody named: the number depends on what else was built."""


def export_saved_model(
    path: Path, call: Callable[[Any], Any], features: Any, model: keras.Model
) -> tuple[Signature, list[str]]:
    """Write a SavedModel with one signature, `serving_default`, of `call(features)`.

    Args:
      call: the inference, of features as the dataset yields them.
      features: their specs.
      model: what holds the variables and tables.

    Returns:
      The signature, and what a user should know: that it could not be made is no failure.
    """
    import tensorflow as tf

    specs = _input_specs(features, model)
    names = _input_names(features, model)
    signature: dict[str, dict[str, Any]] = {
        "inputs": {name: _shown(spec) for name, spec in zip(names, specs, strict=True)},
        "outputs": {},
    }
    if any(not isinstance(spec, tf.TensorSpec) for spec in specs):
        return signature, [_not_made("its features are ragged or sparse")]

    def serve(*tensors: tf.Tensor) -> dict[str, tf.Tensor]:
        return _by_name(call(tf.nest.pack_sequence_as(features, tensors)))

    with quiet_saving():
        try:
            function = tf.function(serve, input_signature=specs, autograph=False)
            traced = function.get_concrete_function()
            module = tf.Module()
            module.served = [*traced.graph.variables, *_tables(model)]
            with _disk_errors():
                tf.saved_model.save(module, str(path), signatures={"serving_default": traced})
        except OSError:
            raise
        except Exception as error:  # whatever the user's model does when it is traced
            shutil.rmtree(path, ignore_errors=True)
            return signature, [_not_made(reason(error).splitlines()[0].rstrip("."))]
    outputs = traced.structured_outputs
    signature["outputs"] = {name: _shown(tensor) for name, tensor in outputs.items()}
    return signature, []


@contextmanager
def quiet_saving() -> Iterator[None]:
    """Without the remarks that TensorFlow and Keras make on the way."""
    logger = logging.getLogger("tensorflow")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


@contextmanager
def _disk_errors() -> Iterator[None]:
    """TensorFlow has kinds of its own for what a disk refuses."""
    import tensorflow as tf

    try:
        yield
    except tf.errors.OpError as error:
        number = errno.ENOSPC if "No space" in error.message else errno.EIO
        raise OSError(number, error.message.splitlines()[0].rpartition("; ")[2]) from error


def _not_made(why: str) -> str:
    return f"There is no SavedModel of the model: {why}."


def _input_specs(features: Any, model: keras.Model) -> list[Any]:
    """The flat features, named, each with any number of examples."""
    import tensorflow as tf

    flat = tf.nest.flatten(features)
    specs = []
    for spec, name in zip(flat, _input_names(features, model), strict=True):
        if isinstance(spec, tf.TensorSpec):
            shape = spec.shape.as_list() if spec.shape.rank is not None else None
            spec = tf.TensorSpec(None if shape is None else [None, *shape[1:]], spec.dtype, name)
        specs.append(spec)
    return specs


def _input_names(features: Any, model: keras.Model) -> list[str]:
    import tensorflow as tf

    if not tf.nest.is_nested(features):
        inputs = getattr(model, "inputs", None) or []
        named = [t.name for t in inputs if not _UNNAMED.fullmatch(t.name)]
        return [_plain(named[0])] if len(inputs) == len(named) == 1 else ["inputs"]
    return feature_names(features)


def feature_names(features: Any) -> list[str]:
    """What the inputs of a signature are called, in the order in which TensorFlow flattens."""
    names: list[str] = []
    for path in _paths(features):
        name = plain = _plain(path)
        number = 1
        while name in names:
            name, number = f"{plain}_{number}", number + 1
        names.append(name)
    return names


def _paths(features: Any, above: str = "") -> list[str]:
    """`a`, `b`, or `input_0`, `input_1`."""
    if isinstance(features, Mapping):
        parts = [
            (f"{above}_{key}" if above else str(key), features[key]) for key in sorted(features)
        ]
    elif isinstance(features, tuple | list):
        parts = [(f"{above or 'input'}_{i}", part) for i, part in enumerate(features)]
    else:
        return [above]
    return [path for name, part in parts for path in _paths(part, name)]


def _plain(name: str) -> str:
    """A name that TensorFlow takes for a parameter's: `sepal length` is `sepal_length`, `class` is `class_`."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    if keyword.iskeyword(plain):
        return f"{plain}_"
    return plain if re.match(r"[A-Za-z]", plain) else f"x{plain}"


def _by_name(outputs: Any) -> dict[str, tf.Tensor]:
    """The outputs as a flat dict: by their keys, else by their places."""
    import tensorflow as tf

    if isinstance(outputs, Mapping) and not any(map(tf.nest.is_nested, outputs.values())):
        return {str(key): tf.convert_to_tensor(value) for key, value in outputs.items()}
    flat = tf.nest.flatten(outputs)
    return {f"output_{i}": tf.convert_to_tensor(value) for i, value in enumerate(flat)}


def _tables(model: keras.Model) -> list[Any]:
    """The lookup tables and the like that the model's layers hold."""
    import tensorflow as tf

    kind = tf.saved_model.experimental.TrackableResource
    return [t for t in tf.train.TrackableView(model).descendants() if isinstance(t, kind)]


def _shown(tensor: Any) -> dict[str, Any]:
    shape = tensor.shape
    return {
        "dtype": tensor.dtype.name,
        "shape": None if shape.rank is None else shape.as_list(),
    }
