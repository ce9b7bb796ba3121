"""How features reach models of every form."""

from __future__ import annotations

from typing import Any

import keras
import pytest
import tensorflow as tf

from elasticdl.engine.inputs import bind_features, num_examples, split_minibatch
from elasticdl.errors import ContractError, DataError

L = keras.layers
ONE = {"x": tf.ones([3, 2])}


class Bare(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.reshape, self.dense = L.Reshape((2,)), L.Dense(1)

    def call(self, inputs: Any) -> Any:
        return self.dense(self.reshape(inputs))


class ByKey(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.dense = L.Dense(1)

    def call(self, inputs: Any) -> Any:
        return self.dense(inputs["x"])


def functional(name: str, as_dict: bool = False) -> keras.Model:
    x = keras.Input((2,), name=name)
    return keras.Model({name: x} if as_dict else x, L.Dense(1)(x))


@pytest.mark.parametrize(
    "model",
    [
        Bare,
        ByKey,
        lambda: functional("x"),
        lambda: functional("another_name"),
        lambda: functional("x", as_dict=True),
        lambda: keras.Sequential([L.Dense(1)]),
        lambda: keras.Sequential([keras.Input((2,)), L.Dense(1)]),
    ],
    ids=["bare", "by key", "functional", "other name", "dict", "sequential", "sequential input"],
)
def test_one_feature_reaches_the_model_when_it_has_any_form(model: Any) -> None:
    made = model()
    bind = bind_features(made, ONE)
    assert made(bind(ONE)).shape == (3, 1)
    assert len(made.trainable_variables) == 2


def test_extra_features_are_left_out_when_a_functional_model_names_its_inputs() -> None:
    made = functional("x")
    two = {"x": tf.ones([3, 2]), "unused": tf.ones([3])}
    assert made(bind_features(made, two)(two)).shape == (3, 1)


def test_a_missing_feature_is_named() -> None:
    with pytest.raises(ContractError, match=r"inputs are x.*features a, b: x is missing"):
        bind_features(functional("x"), {"a": tf.ones([3, 2]), "b": tf.ones([3])})


def test_the_models_own_error_comes_out_when_no_form_fits() -> None:
    class Broken(keras.Model):
        def call(self, inputs: Any) -> Any:
            raise RuntimeError("a slip of the user's")

    with pytest.raises(RuntimeError, match="a slip"):
        bind_features(Broken(), ONE)


def test_examples_are_counted_when_ragged_or_sparse() -> None:
    ragged = tf.ragged.constant([[1], [2, 3], []])
    assert int(num_examples({"r": ragged})) == 3
    assert int(num_examples(ragged.to_sparse())) == 3


def test_a_minibatch_of_another_form_is_refused() -> None:
    with pytest.raises(DataError, match=r"it yields a dict of x"):
        split_minibatch(ONE)
    with pytest.raises(DataError, match=r"a tuple of 4"):
        split_minibatch((1, 2, 3, 4))
