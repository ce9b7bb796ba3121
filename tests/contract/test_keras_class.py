"""Keras classes with default_input, default_loss and default_optimizer."""

import keras
import pytest
import tensorflow as tf

from elasticdl.contract.load import load_spec
from elasticdl.contract.mode import Mode
from elasticdl.errors import ContractError, InvalidValue

from .conftest import WriteZoo

FINTECH = """
import keras
import tensorflow as tf

class MyKerasModel(keras.Model):
    def __init__(self, hidden_units=(4,), **kwargs):
        super().__init__(**kwargs)
        self.stack = [keras.layers.Dense(n) for n in hidden_units]
        self.shift = 5.0

    def call(self, inputs):
        for layer in self.stack:
            inputs = layer(inputs)
        return inputs

    @staticmethod
    def default_input(dataset, mode): return dataset.map(lambda x: (x, x))
    @classmethod
    def default_loss(cls, output, labels): return tf.reduce_sum(output - 10 * labels)
    def default_optimizer(learning_rate=0.1): return keras.optimizers.SGD(learning_rate)
    def default_metrics(self, predictions, labels): return {"shifted": predictions + self.shift}
    default_callbacks = [keras.callbacks.History()]
"""
DATA = """
def credit_data_processor(dataset, mode): return dataset.map(lambda x: (x + 1, x))
def loss(labels, output): return labels
def twice(): return 2
"""
LABELS, OUTPUTS = tf.constant([1.0]), tf.constant([3.0])


@pytest.fixture
def zoo(write_zoo: WriteZoo):
    return write_zoo({"fintech/models.py": FINTECH, "fintech/data.py": DATA})


def first(spec, mode: Mode = Mode.TRAINING):
    return next(iter(spec.batches(tf.data.Dataset.range(2), mode, None, 2)))


def test_the_defaults_of_the_class_are_used(zoo) -> None:
    spec = load_spec("fintech.MyKerasModel", model_zoo=zoo)
    model = spec.build_model()
    assert model(tf.ones([1, 2])).shape == (1, 4)
    assert float(spec.loss(LABELS, OUTPUTS, None)) == -7.0
    assert float(spec.make_optimizer().learning_rate) == pytest.approx(0.1)
    assert first(spec)[0].numpy().tolist() == [0, 1]
    assert float(spec.metric_values(LABELS, OUTPUTS)["shifted"][0]) == 8.0
    assert len(spec.callbacks()) == 1


def test_the_command_of_the_design_document_loads(zoo) -> None:
    spec = load_spec(
        "fintech.MyKerasModel",
        model_zoo=zoo,
        dataset_fn="fintech.credit_data_processor",
        model_params={"hidden_units": [10, 100, 20, 5], "learning_rate": 0.01},
    )
    assert spec.build_model()(tf.ones([1, 2])).shape == (1, 5)
    assert float(spec.make_optimizer().learning_rate) == pytest.approx(0.01)
    assert first(spec)[0].numpy().tolist() == [1, 2]
    assert sorted(spec.files) == ["fintech/data.py", "fintech/models.py"]


def test_a_loss_and_an_optimizer_are_overridden_by_name_or_object(zoo) -> None:
    spec = load_spec("fintech.MyKerasModel", model_zoo=zoo, loss="fintech.data", optimizer="adam")
    assert float(spec.loss(LABELS, OUTPUTS, None)) == 1.0
    assert isinstance(spec.make_optimizer(), keras.optimizers.Adam)
    spec = load_spec("fintech.MyKerasModel", model_zoo=zoo, loss=lambda labels, output: output)
    assert float(spec.loss(LABELS, OUTPUTS, None)) == 3.0


def test_a_method_with_self_sees_the_model_that_was_built(zoo) -> None:
    spec = load_spec("fintech.MyKerasModel", model_zoo=zoo)
    spec.build_model().shift = 100.0
    assert float(spec.metric_values(LABELS, OUTPUTS)["shifted"][0]) == 103.0


def test_unknown_params_are_told() -> None:
    class Net(keras.Model):
        default_loss = "mse"
        default_optimizer = "sgd"

        def __init__(self, hidden_units=3):
            super().__init__()

    with pytest.raises(InvalidValue, match=r"no parameter 'hidden'. Did you mean 'hidden_units'"):
        load_spec(Net, model_params={"hidden": 3})
    spec = load_spec(Net, model_params={"hidden_units": 3, "learning_rate": 0.5})
    assert spec.loss == "mse"
    assert float(spec.make_optimizer().learning_rate) == 0.5


def test_functions_beside_the_class_fill_in(write_zoo: WriteZoo) -> None:
    text = "import keras\nclass Net(keras.Sequential): default_loss = 'mse'\n"
    beside = "loss = 'mae'\noptimizer = 'adam'\n"
    spec = load_spec("m.Net", model_zoo=write_zoo({"m.py": text + beside}))
    assert spec.loss == "mse"
    assert isinstance(spec.make_optimizer(), keras.optimizers.Adam)


def test_a_missing_default_is_told(write_zoo: WriteZoo) -> None:
    zoo = write_zoo({"m.py": "import keras\nclass Net(keras.Sequential): pass\n"})
    with pytest.raises(
        ContractError, match=r"no loss: looked for 'default_loss' in the class Net of m\.py"
    ):
        load_spec("m.Net", model_zoo=zoo)
