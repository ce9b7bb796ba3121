"""What the oldest model files assume of TensorFlow 1 and of numpy labels.

Three things, each handed only to the code that needs it; nothing changes for the rest of the
process:

- `tf.train.GradientDescentOptimizer` and its friends: a zoo file that mentions one gets a stand-in
  for the `tensorflow` module that has them, as functions that return the Keras optimizer;
- an optimizer of `tf.compat.v1.train` becomes the Keras one;
- `labels.flatten()`: a function that says `flatten` gets labels that know it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from elasticdl.contract.bind import code_of, nested_codes
from elasticdl.errors import ContractError

if TYPE_CHECKING:
    import keras
    import tensorflow as tf

__all__ = [
    "Labels",
    "hand_labels",
    "is_old_optimizer",
    "mentions_old_optimizer",
    "to_keras",
    "with_old_optimizers",
]

# The Keras class, and for each of its arguments the attribute that holds it in the old optimizer.
_EQUIVALENTS: dict[str, tuple[str, dict[str, str]]] = {
    "GradientDescentOptimizer": ("SGD", {"learning_rate": "_learning_rate"}),
    "MomentumOptimizer": (
        "SGD",
        {"learning_rate": "_learning_rate", "momentum": "_momentum", "nesterov": "_use_nesterov"},
    ),
    "AdamOptimizer": (
        "Adam",
        {"learning_rate": "_lr", "beta_1": "_beta1", "beta_2": "_beta2", "epsilon": "_epsilon"},
    ),
    "AdagradOptimizer": (
        "Adagrad",
        {
            "learning_rate": "_learning_rate",
            "initial_accumulator_value": "_initial_accumulator_value",
        },
    ),
    "RMSPropOptimizer": (
        "RMSprop",
        {
            "learning_rate": "_learning_rate",
            "rho": "_decay",
            "momentum": "_momentum",
            "epsilon": "_epsilon",
            "centered": "_centered",
        },
    ),
    "FtrlOptimizer": (
        "Ftrl",
        {
            "learning_rate": "_learning_rate",
            "learning_rate_power": "_learning_rate_power",
            "initial_accumulator_value": "_initial_accumulator_value",
            "l1_regularization_strength": "_l1_regularization_strength",
            "l2_regularization_strength": "_l2_regularization_strength",
            "l2_shrinkage_regularization_strength": "_l2_shrinkage_regularization_strength",
            "beta": "_beta",
        },
    ),
    "AdadeltaOptimizer": (
        "Adadelta",
        {"learning_rate": "_lr", "rho": "_rho", "epsilon": "_epsilon"},
    ),
}
_MENTION = re.compile(rf"\b(?:{'|'.join(_EQUIVALENTS)})\b".encode())


def mentions_old_optimizer(source: bytes) -> bool:
    """Whether a file's text names an optimizer of TensorFlow 1."""
    return _MENTION.search(source) is not None


def with_old_optimizers(module: ModuleType) -> ModuleType:
    """A stand-in for `tensorflow` or its `train`; any other module as it is."""
    if module.__name__ == "tensorflow":
        return _Overlay(module, {"train": lambda: _with_factories(module.train)})
    if module.__name__.endswith("_api.v2.train"):
        return _with_factories(module)
    return module


def _with_factories(train: ModuleType) -> ModuleType:
    return _Overlay(train, {name: functools.partial(_factory, name) for name in _EQUIVALENTS})


class _Overlay(ModuleType):
    """A module with a few attributes more; everything else is the real module's."""

    def __init__(self, real: ModuleType, added: dict[str, Callable[[], Any]]) -> None:
        super().__init__(real.__name__, real.__doc__)
        for name in ("__file__", "__path__", "__package__", "__spec__", "__loader__"):
            if hasattr(real, name):
                setattr(self, name, getattr(real, name))
        self.__dict__["_overlay"] = (real, added)

    def __getattr__(self, name: str) -> Any:
        real, added = self.__dict__["_overlay"]
        return added[name]() if name in added else getattr(real, name)

    def __dir__(self) -> Iterator[str]:  # type: ignore[override]
        real, added = self.__dict__["_overlay"]
        return iter(sorted({*dir(real), *added}))


def _factory(name: str) -> Callable[..., keras.optimizers.Optimizer]:
    def make(*args: Any, **kwargs: Any) -> keras.optimizers.Optimizer:
        import tensorflow as tf

        return to_keras(getattr(tf.compat.v1.train, name)(*args, **kwargs))

    make.__name__ = make.__qualname__ = name
    return make


def is_old_optimizer(value: Any) -> bool:
    import tensorflow as tf

    return isinstance(value, tf.compat.v1.train.Optimizer)


def to_keras(old: Any) -> keras.optimizers.Optimizer:
    """The Keras optimizer with the settings of a `tf.compat.v1.train` one."""
    import keras

    name = type(old).__name__
    if name not in _EQUIVALENTS:
        raise ContractError(
            f"The optimizer {name} of tf.compat.v1.train has no Keras equivalent. Return an "
            "optimizer of "
            "tf.keras.optimizers, for example tf.keras.optimizers.SGD(0.1)."
        )
    keras_name, attributes = _EQUIVALENTS[name]
    settings = {argument: getattr(old, attribute) for argument, attribute in attributes.items()}
    if isinstance(settings["learning_rate"], int):
        settings["learning_rate"] = float(settings["learning_rate"])
    if name == "AdagradOptimizer":
        # TensorFlow 1 added nothing under the root.
        settings["epsilon"] = 0.0
    return getattr(keras.optimizers, keras_name)(**settings)


def hand_labels(fn: Callable[..., Any], labels: Any) -> Any:
    """Labels for a user's function: as they are, or with `flatten()` when the function says it."""
    code = code_of(fn)
    if code is None or not any("flatten" in c.co_names for c in nested_codes(code)):
        return labels
    import tensorflow as tf

    return tf.nest.map_structure(lambda x: Labels(x) if tf.is_tensor(x) else x, labels)


class Labels:
    """A tensor that answers to `flatten()` and takes the type it is asked for, as numpy did."""

    def __init__(self, tensor: tf.Tensor) -> None:
        self._tensor = tensor

    def flatten(self) -> Labels:
        import tensorflow as tf

        return Labels(tf.reshape(self._tensor, [-1]))

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> tf.Tensor:
        import tensorflow as tf

        return self._tensor if dtype is None else tf.cast(self._tensor, dtype, name=name)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = self._tensor.numpy()
        return array if dtype is None else array.astype(dtype)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_tensor":
            raise AttributeError(name)
        return getattr(self._tensor, name)

    def __getitem__(self, index: Any) -> Labels:
        return Labels(self._tensor[index])

    def __len__(self) -> int:
        return len(self._tensor)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._tensor)

    def __repr__(self) -> str:
        return f"Labels({self._tensor!r})"

    # Equality is by element, as it is for tensors, so labels are not hashable either.
    __hash__ = None  # type: ignore[assignment]


def _binary(name: str) -> Callable[[Labels, Any], Any]:
    def operate(self: Labels, other: Any) -> Any:
        mine, theirs = _alike(self._tensor, other)
        return getattr(mine, name)(theirs)

    operate.__name__ = name
    return operate


def _unary(name: str) -> Callable[[Labels], Any]:
    def operate(self: Labels) -> Any:
        return getattr(self._tensor, name)()

    operate.__name__ = name
    return operate


def _alike(mine: tf.Tensor, other: Any) -> tuple[Any, Any]:
    """Both sides in one type: whole labels follow the other side, fractional ones lead it."""
    import tensorflow as tf

    if isinstance(other, Labels):
        other = other.__tf_tensor__()
    if not hasattr(other, "dtype") or tf.as_dtype(other.dtype) == mine.dtype:
        return mine, other
    if mine.dtype.is_floating and not tf.as_dtype(other.dtype).is_floating:
        return mine, tf.cast(other, mine.dtype)
    return tf.cast(mine, other.dtype), other


_OPERATORS = (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and",
    "or",
    "xor",
)
for _name in [*_OPERATORS, *(f"r{o}" for o in _OPERATORS), "eq", "ne", "lt", "le", "gt", "ge"]:
    setattr(Labels, f"__{_name}__", _binary(f"__{_name}__"))
for _name in ["neg", "abs", "invert", "bool", "int", "float", "index"]:
    setattr(Labels, f"__{_name}__", _unary(f"__{_name}__"))
