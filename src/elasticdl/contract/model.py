"""The model of a Spec: built from an instance, a factory or a class, with the user's parameters."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from elasticdl.contract.bind import check_params, takes
from elasticdl.errors import ContractError, InvalidValue

if TYPE_CHECKING:
    import keras

__all__ = ["LEARNING_RATE_NAMES", "Models", "model_factory", "split_params"]

LEARNING_RATE_NAMES = ("learning_rate", "lr")


class Models:
    """Builds the user's model, and remembers the last one.

    Some questions (does the model look at its inputs by key? what shape does it want?) need a model
    to look at. The one that was built for a look is handed out by the next `build`, so none is
    built twice.
    """

    def __init__(self, where: str) -> None:
        self.make: Callable[[], Any] = lambda: None
        self._where = where
        self._last: keras.Model | None = None
        self._is_spare = False
        # A pipeline traces the dataset in a thread of its own.
        self._lock = threading.RLock()

    def build(self) -> keras.Model:
        with self._lock:
            if self._last is None or not self._is_spare:
                self._last = self._checked(self.make())
            self._is_spare = False
            return self._last

    def look(self) -> keras.Model:
        """A model to inspect, built now if there is none yet."""
        import tensorflow as tf

        with self._lock:
            if self._last is None:
                # Datasets are traced in graphs; the model's variables must not belong to one.
                with tf.init_scope():
                    self._last = self._checked(self.make())
                self._is_spare = True
            return self._last

    def _checked(self, model: Any) -> keras.Model:
        import keras

        if isinstance(model, keras.Model):
            return model
        raise ContractError(
            f"{self._where} returned {_shown(model)} for the model. Return a tf.keras.Model, for "
            "example "
            "tf.keras.Model(inputs=inputs, outputs=outputs)."
        )


def model_factory(model: Any, params: Mapping[str, Any], where: str) -> Callable[[], Any]:
    """A function without parameters that makes the model; its parameters are checked now."""
    import keras

    if isinstance(model, keras.Model):
        if params:
            raise InvalidValue(
                f"The model of {where} is an instance, which takes no model_params, and "
                f"{', '.join(map(repr, params))} was given. Make it a function custom_model("
                f"{', '.join(params)}) that returns the model."
            )
        return lambda: model
    if not callable(model):
        raise ContractError(
            f"The model of {where} is {_shown(model)}. Give a tf.keras.Model, a class derived from "
            "it, or a "
            "function that returns one."
        )
    check_params(f"{getattr(model, '__name__', 'the model')} of {where}", model, params)
    return lambda: model(**params)


def split_params(
    params: Mapping[str, Any], model: Any, optimizer: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters of the model, and of the optimizer: a learning rate goes to whoever takes it.

    `optimizer` is a factory, or a name: Keras' named optimizers take a `learning_rate`.
    """
    for_model, for_optimizer = dict(params), {}
    for given in LEARNING_RATE_NAMES:
        if given not in params or not (name := _learning_rate_of(optimizer)):
            continue
        # Keras refuses a whole number for a learning rate.
        rate = params[given]
        for_optimizer[name] = float(rate) if isinstance(rate, int) else rate
        if not _model_wants(model, given):
            del for_model[given]
    return for_model, for_optimizer


def _learning_rate_of(optimizer: Any) -> str | None:
    if isinstance(optimizer, str):
        return "learning_rate"
    if not callable(optimizer):
        return None
    return next((n for n in LEARNING_RATE_NAMES if takes(optimizer, n, explicitly=True)), None)


def _model_wants(model: Any, name: str) -> bool:
    import keras

    if isinstance(model, keras.Model) or not callable(model):
        return False
    # A Keras class hands its **kwargs to Keras, which knows no learning rate.
    return takes(model, name, explicitly=isinstance(model, type) and issubclass(model, keras.Model))


def _shown(value: Any) -> str:
    return "nothing (None)" if value is None else f"{value!r} ({type(value).__name__})"
