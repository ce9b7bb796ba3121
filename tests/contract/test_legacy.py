"""What old model files assume of TensorFlow is there for them, and for nobody else."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from elasticdl.contract.legacy import Labels, hand_labels, to_keras
from elasticdl.contract.load import load_spec
from elasticdl.contract.zoo import Zoo
from elasticdl.errors import ContractError

from .conftest import WriteZoo

OLD = """
import tensorflow as tf
import tensorflow.keras.layers as L
from tensorflow import keras
from tensorflow import train
from tensorflow.python.framework.ops import EagerTensor

def optimizer(lr=0.1):
    return tf.train.GradientDescentOptimizer(learning_rate=lr)

def other():
    return train.MomentumOptimizer(0.2, 0.9, use_nesterov=True)

def is_tensor(x):
    return isinstance(x, tf.Tensor) and isinstance(x, EagerTensor)

Dense = L.Dense
FeatureMessage = tf.train.Feature
"""


def test_an_old_optimizer_is_the_keras_one_in_a_zoo_file(write_zoo: WriteZoo) -> None:
    module = Zoo(write_zoo({"m.py": OLD})).find("m").module
    made = module.optimizer(0.5)
    assert isinstance(made, keras.optimizers.SGD)
    assert float(made.learning_rate) == 0.5
    momentum = module.other().get_config()
    assert (momentum["momentum"], momentum["nesterov"]) == (0.9, True)


def test_everything_else_of_tensorflow_is_the_real_thing(write_zoo: WriteZoo) -> None:
    module = Zoo(write_zoo({"m.py": OLD})).find("m").module
    assert module.is_tensor(tf.constant(1))
    assert module.Dense is keras.layers.Dense
    assert module.FeatureMessage is tf.train.Feature
    assert module.tf.constant is tf.constant
    assert "GradientDescentOptimizer" in dir(module.tf.train)
    assert not hasattr(tf.train, "GradientDescentOptimizer")


def test_a_file_without_old_names_sees_the_real_module(write_zoo: WriteZoo) -> None:
    files = {"m.py": OLD, "n.py": "import tensorflow as tf\nimport m"}
    assert Zoo(write_zoo(files)).find("n").module.tf is tf


@pytest.mark.parametrize(
    ("old", "kind", "expected"),
    [
        (tf.compat.v1.train.GradientDescentOptimizer(0.5), "SGD", {"learning_rate": 0.5}),
        (tf.compat.v1.train.MomentumOptimizer(0.5, 0.9), "SGD", {"momentum": 0.9}),
        (tf.compat.v1.train.AdamOptimizer(beta1=0.8), "Adam", {"beta_1": 0.8, "epsilon": 1e-8}),
        (
            tf.compat.v1.train.AdagradOptimizer(0.5),
            "Adagrad",
            {"initial_accumulator_value": 0.1, "epsilon": 0.0},
        ),
        (tf.compat.v1.train.RMSPropOptimizer(0.5, decay=0.7), "RMSprop", {"rho": 0.7}),
        (
            tf.compat.v1.train.FtrlOptimizer(0.5, l1_regularization_strength=0.25),
            "Ftrl",
            {"l1_regularization_strength": 0.25},
        ),
        (tf.compat.v1.train.AdadeltaOptimizer(0.5, rho=0.9), "Adadelta", {"rho": 0.9}),
    ],
)
def test_an_optimizer_of_compat_v1_becomes_the_keras_one(
    old: object, kind: str, expected: dict[str, float]
) -> None:
    made = to_keras(old)
    assert type(made).__name__ == kind
    assert {name: made.get_config()[name] for name in expected} == pytest.approx(expected)


@pytest.mark.parametrize(
    "old",
    [
        tf.compat.v1.train.GradientDescentOptimizer(0.1),
        tf.compat.v1.train.MomentumOptimizer(0.1, 0.9),
        tf.compat.v1.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
        tf.compat.v1.train.AdamOptimizer(0.1),
        tf.compat.v1.train.AdagradOptimizer(0.1),
        tf.compat.v1.train.FtrlOptimizer(0.1),
        tf.compat.v1.train.AdadeltaOptimizer(0.1),
    ],
    ids=lambda old: type(old).__name__,
)
def test_the_keras_optimizer_takes_the_steps_of_the_old_one(old: object) -> None:
    one, two = tf.Variable([1.0, -2.0]), keras.Variable([1.0, -2.0])
    new = to_keras(old)
    for gradient in ([0.5, -1.0], [0.25, 2.0], [-1.0, 0.125]):
        old.apply_gradients([(tf.constant(gradient), one)])
        new.apply_gradients([(tf.constant(gradient), two)])
    np.testing.assert_allclose(one.numpy(), two.numpy(), rtol=1e-4)


def test_an_old_optimizer_without_equivalent_is_refused() -> None:
    with pytest.raises(ContractError, match=r"ProximalAdagradOptimizer .* no Keras equivalent"):
        to_keras(tf.compat.v1.train.ProximalAdagradOptimizer(0.1))


def test_a_model_file_may_return_an_optimizer_of_compat_v1(write_zoo: WriteZoo) -> None:
    zoo = write_zoo(
        {
            "m.py": """
            import tensorflow.compat.v1 as tf
            import keras
            model = keras.Sequential([keras.layers.Dense(1)])
            loss = "mse"
            def optimizer():
                return tf.train.AdamOptimizer(0.25)
            """
        }
    )
    made = load_spec("m.model", model_zoo=zoo).make_optimizer()
    assert isinstance(made, keras.optimizers.Adam)
    assert float(made.learning_rate) == 0.25


def flattening(labels: tf.Tensor, output: tf.Tensor) -> tf.Tensor:
    return tf.equal(tf.argmax(output, axis=1), labels.flatten())


def plain(labels: tf.Tensor, output: tf.Tensor) -> tf.Tensor:
    return labels


@pytest.mark.parametrize("run", [lambda f: f, tf.function], ids=["eager", "graph"])
def test_labels_flatten_and_take_the_type_they_are_compared_with(run: object) -> None:
    def matches(labels: tf.Tensor) -> tf.Tensor:
        return flattening(hand_labels(flattening, labels), tf.eye(3))

    assert run(matches)(tf.constant([[0], [1], [0]], tf.int32)).numpy().tolist() == [
        True,
        True,
        False,
    ]


def test_labels_are_handed_as_they_are_to_a_function_that_does_not_flatten() -> None:
    labels = tf.constant([1])
    assert hand_labels(plain, labels) is labels


def test_numpy_labels_pass_through() -> None:
    labels = np.ones((2, 1))
    assert hand_labels(flattening, labels) is labels


def test_flatten_is_found_in_an_inner_function_and_a_lambda() -> None:
    def outer(labels: tf.Tensor) -> object:
        return (lambda: labels.flatten())()

    assert isinstance(hand_labels(outer, tf.constant([[1]])), Labels)


def test_labels_behave_as_their_tensor() -> None:
    labels = Labels(tf.constant([[1, 2], [3, 4]], tf.int32))
    assert labels.shape == (2, 2)
    assert labels.dtype == tf.int32
    assert len(labels) == 2
    assert labels[0].numpy().tolist() == [1, 2]
    assert (labels + 1).numpy().tolist() == [[2, 3], [4, 5]]
    assert (1 - labels).numpy().tolist() == [[0, -1], [-2, -3]]
    assert (-labels).numpy()[0, 0] == -1
    assert np.asarray(labels).sum() == 10
    assert tf.reshape(labels, [-1]).shape == (4,)
    assert tf.cast(labels, tf.float32).dtype == tf.float32


def test_labels_meet_the_other_side_in_one_type() -> None:
    whole, fractional = Labels(tf.constant([1], tf.int32)), Labels(tf.constant([0.5]))
    assert bool((whole == tf.constant([1], tf.int64))[0])
    assert (whole * tf.constant([0.5])).numpy() == [0.5]
    assert (fractional * tf.constant([2])).numpy() == [1.0]
    assert (tf.constant([2.0]) * whole).numpy() == [2.0]
