"""What a model puts out, as named columns of rows: their names, their types, and the way back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from elasticdl.data.source import ArraySpec
from elasticdl.engine.inputs import num_examples
from elasticdl.errors import ContractError

if TYPE_CHECKING:
    import keras

__all__ = ["SINGLE", "OutputForm", "rows_of", "specs_of"]

SINGLE = "prediction"
"""The name of the only output."""


class OutputForm:
    """The structure of a model's outputs, seen on a first minibatch.

    Args:
      model: the model.
      features: the minibatch.
      outputs: what the model made of it: a tensor, or a dict, tuple or list of them.
    """

    def __init__(self, model: keras.Model, features: Any, outputs: Any) -> None:
        import tensorflow as tf

        self._structure = tf.nest.map_structure(lambda _: 0, outputs)
        self.names = list(_names(_own_names(model, outputs), SINGLE))
        self.ranks = [len(tensor.shape) for tensor in self.flat(outputs)]
        rows = int(num_examples(features))
        for name, tensor in zip(self.names, self.flat(outputs), strict=True):
            if not tensor.shape.rank or int(num_examples(tensor)) != rows:
                raise ContractError(
                    f"The model's output {name!r} has the shape {tuple(tensor.shape)} for a minibatch of "
                    f"{rows}: a prediction is made for each record. Give it {rows} rows."
                )

    def flat(self, outputs: Any) -> list[Any]:
        """The outputs one after the other, in types that files have; also in a graph."""
        import tensorflow as tf

        return [_common(tensor) for tensor in tf.nest.flatten(outputs)]

    def packed(self, columns: Mapping[str, Any]) -> Any:
        """Columns in the structure that the model gave them."""
        import tensorflow as tf

        return tf.nest.pack_sequence_as(self._structure, [columns[name] for name in self.names])


def specs_of(ranks: Sequence[int], specs: Sequence[Any]) -> list[ArraySpec]:
    """The types of a graph's outputs; None where a length is not the same for all records."""
    import tensorflow as tf

    found = []
    for rank, spec in zip(ranks, specs, strict=True):
        shape = spec.shape if spec.shape.rank is not None else tf.TensorShape([None] * rank)
        inner = tuple(None if n is None else int(n) for n in shape.as_list()[1:])
        kind = object if spec.dtype == tf.string else spec.dtype.as_numpy_dtype
        found.append(ArraySpec(np.dtype(kind), inner))
    return found


def rows_of(tensor: Any, spec: ArraySpec) -> Any:
    """A minibatch's values: an array, or a list of rows where their lengths vary."""
    import tensorflow as tf

    if isinstance(tensor, tf.RaggedTensor):
        return tensor.to_list()
    array = tensor.numpy()
    return list(array) if None in spec.shape else array


def _common(tensor: Any) -> Any:
    import tensorflow as tf

    if isinstance(tensor, tf.SparseTensor):
        tensor = tf.sparse.to_dense(tensor)
    if not isinstance(tensor, tf.RaggedTensor):
        tensor = tf.convert_to_tensor(tensor)
    if tensor.dtype.is_complex:
        raise ContractError(
            f"The model puts out {tensor.dtype.name}, which no file format has. Give its real and its "
            "imaginary part as two outputs."
        )
    is_short = tensor.dtype in (tf.float16, tf.bfloat16)
    return tf.cast(tensor, tf.float32) if is_short else tensor


def _own_names(model: keras.Model, outputs: Any) -> Any:
    """The outputs of a functional model by the names that its author gave them."""
    if not isinstance(outputs, list | tuple):
        return outputs
    names = list(getattr(model, "output_names", None) or ())
    given = len(names) == len(set(names)) == len(outputs) and not any(map(_is_automatic, names))
    return names if given else outputs


def _is_automatic(name: str) -> bool:
    """Whether Keras made the name up: it counts layers as they are made, so it is another next time."""
    import keras

    kind = re.sub(r"_\d+$", "", name)
    return any(_snake(layer) == kind for layer in dir(keras.layers))


def _snake(name: str) -> str:
    words = re.sub(r"\W+", "", name)
    words = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", words)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", words).lower()


def _names(outputs: Any, name: str) -> Iterator[str]:
    """A name for each tensor, in the order in which `tf.nest` flattens them."""
    if isinstance(outputs, Mapping):
        for key in sorted(outputs):
            below = str(key) if name == SINGLE else f"{name}_{key}"
            yield from _names(outputs[key], below)
    elif isinstance(outputs, list | tuple):
        for i, item in enumerate(outputs):
            yield from [item] if isinstance(item, str) else _names(item, f"{name}_{i}")
    else:
        yield name
