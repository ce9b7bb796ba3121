"""Python objects in place of names, overrides, and what is said when a part is missing."""

import types
from pathlib import Path

import keras
import pytest
import tensorflow as tf

from elasticdl.contract.keras_names import keras_names
from elasticdl.contract.load import load_spec
from elasticdl.contract.mode import Mode
from elasticdl.errors import ContractError, InvalidValue, NotFound, UnknownName

from .conftest import WriteZoo


def net() -> keras.Model:
    return keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])


def test_a_model_instance_with_overrides() -> None:
    model = net()
    spec = load_spec(model, loss="mse", optimizer="sgd", eval_metrics_fn=["mae"])
    assert spec.build_model() is model
    assert [m.name for m in spec.metrics()] == ["mae"]
    data = tf.data.Dataset.from_tensor_slices(([[1.0]], [[1.0]]))
    assert len(list(spec.batches(data, Mode.TRAINING, None, 2))) == 1
    assert spec.files == []


def test_a_compiled_model_brings_its_own_parts() -> None:
    model = net()
    model.compile(
        loss="mse",
        optimizer=keras.optimizers.SGD(0.25),
        metrics=["mae", keras.metrics.AUC(name="auc")],
    )
    spec = load_spec(model)
    assert spec.loss == "mse"
    assert float(spec.make_optimizer().learning_rate) == 0.25
    assert [m.name for m in spec.metrics()] == ["mae", "auc"]


def test_a_factory_function_with_params() -> None:
    spec = load_spec(
        lambda units: keras.Sequential([keras.layers.Dense(units)]),
        loss="mse",
        optimizer="sgd",
        model_params={"units": 3},
    )
    assert spec.build_model()(tf.ones([1, 1])).shape == (1, 3)


def test_a_module_is_a_model_file() -> None:
    module = types.ModuleType("mine")
    module.custom_model, module.loss, module.optimizer = net, "mse", "sgd"
    assert load_spec(module).loss == "mse"


def test_the_working_directory_is_the_default_zoo(
    write_zoo: WriteZoo, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "import keras\nmodel = keras.Sequential([])\nloss = 'mse'\noptimizer = 'sgd'"
    monkeypatch.chdir(write_zoo({"m.py": text}))
    assert load_spec("m.model").loss == "mse"


def test_names_are_looked_up_in_the_models_file_first(write_zoo: WriteZoo) -> None:
    text = "import keras\nmodel = keras.Sequential([])\nmse = 'mae'\noptimizer = 'sgd'"
    zoo = write_zoo({"m.py": text, "losses.py": "def mine(labels, output): return output"})
    assert load_spec("m", model_zoo=zoo, loss="mse").loss == "mae"
    assert load_spec("m", model_zoo=zoo, loss="mape").loss == "mape"
    assert float(load_spec("m", model_zoo=zoo, loss="losses.mine").loss(1.0, 2.0, None)) == 2.0


@pytest.mark.parametrize(
    ("part", "name", "message"),
    [
        ("loss", "mean_sq", "loss 'mean_sq' is neither in m.py nor in Keras"),
        ("dataset_fn", "dataset", "dataset_fn 'dataset' is not in m.py.*Did you mean 'dataset_a'"),
        ("loss", "m.nothing", "loss 'm.nothing' names 'nothing', which m.py does not have"),
        ("callbacks", "m", r"callbacks 'm' is not in m\.py\..*such as my_file\.callbacks\.$"),
        ("optimizer", "sgdd", r"neither in m\.py nor in Keras\. Did you mean 'sgd'\?$"),
        ("loss", "MeanSquareError", r"nor in Keras\. Did you mean 'mean_squared_error'\?$"),
        ("eval_metrics_fn", "acuracy", r"nor in Keras\. Did you mean 'Accuracy'\?$"),
        ("optimizer", "xyz", r"nor in Keras\. Give .* such as my_file\.optimizer\.$"),
    ],
)
def test_an_override_that_leads_nowhere_is_told(
    write_zoo: WriteZoo, part: str, name: str, message: str
) -> None:
    text = (
        "import keras\nmodel = keras.Sequential([])\nloss = 'mse'\noptimizer = 'sgd'\ndataset_a = 1"
    )
    with pytest.raises(UnknownName, match=message):
        load_spec("m", model_zoo=write_zoo({"m.py": text}), **{part: name})


def test_a_missing_file_of_an_override_is_told(write_zoo: WriteZoo) -> None:
    zoo = write_zoo({"m.py": "import keras\nmodel = keras.Sequential([])\noptimizer = 'sgd'"})
    with pytest.raises(NotFound, match=r"The loss 'other\.mine' is not in the model zoo"):
        load_spec("m", model_zoo=zoo, loss="other.mine")


def test_the_recommended_loss_does_not_broadcast_labels_against_outputs(
    write_zoo: WriteZoo,
) -> None:
    text = "import keras\nmodel = keras.Sequential([])\noptimizer = 'sgd'\n"
    with pytest.raises(ContractError) as caught:
        load_spec("m", model_zoo=write_zoo({"m.py": text}))
    recommended = str(caught.value).split("`")[1]
    spec = load_spec("m", model_zoo=write_zoo({"m.py": text + recommended}))
    labels, outputs = tf.constant([1.0, 3.0]), tf.constant([[1.0], [3.0]])
    assert float(spec.loss(labels, outputs, None)) == 0.0


@pytest.mark.parametrize("part", ["loss", "optimizer"])
def test_a_missing_part_is_told_with_an_example(write_zoo: WriteZoo, part: str) -> None:
    parts = {"loss": "'mse'", "optimizer": "'sgd'"}
    del parts[part]
    text = "import keras\nmodel = keras.Sequential([])\n" + "\n".join(
        f"{k} = {v}" for k, v in parts.items()
    )
    zoo = write_zoo({"m.py": text})
    with pytest.raises(
        ContractError, match=rf"no {part}: looked for '{part}' in m\.py.*`def {part}\("
    ):
        load_spec("m", model_zoo=zoo)
    spec = load_spec("m", model_zoo=zoo, training=False)
    with pytest.raises(ContractError, match=f"no {part}"):
        spec.loss(1.0, 1.0, None) if part == "loss" else spec.make_optimizer()


def test_a_missing_model_is_told_with_an_example(write_zoo: WriteZoo) -> None:
    with pytest.raises(
        ContractError, match=r"no model: looked for 'custom_model' and 'model' in m\.py"
    ):
        load_spec("m", model_zoo=write_zoo({"m.py": "loss = 'mse'"}))
    with pytest.raises(ContractError, match="No model was given"):
        load_spec(None)


def test_a_model_of_the_wrong_kind_is_told(write_zoo: WriteZoo) -> None:
    zoo = write_zoo({"m.py": "model = 3\nloss = 'mse'\noptimizer = 'sgd'"})
    with pytest.raises(ContractError, match=r"model of m\.py is 3 \(int\)"):
        load_spec("m", model_zoo=zoo)


@pytest.mark.parametrize(
    ("part", "name", "meant"),
    [("optimizer", "sgdd", "sgd"), ("loss", "msee", "mse"), ("loss", "hube", "huber")],
)
def test_an_unknown_name_of_keras_is_told_with_the_nearest(
    part: str, name: str, meant: str
) -> None:
    parts = {"loss": "mse", "optimizer": "sgd", part: name}
    module = types.ModuleType("m")
    vars(module).update(model=net(), **parts)
    with pytest.raises(UnknownName, match=rf"Keras has no {part} '{name}'\. .*'{meant}'\?$"):
        load_spec(module)


def test_names_of_keras_are_those_that_it_takes_as_they_are() -> None:
    assert {"mse", "mean_squared_error", "huber"} <= set(keras_names("losses"))
    assert {"AUC", "mae", "sparse_categorical_accuracy"} <= set(keras_names("metrics"))
    assert {"sgd", "adam", "rmsprop"} <= set(keras_names("optimizers"))
    assert {"get", "MeanIoU"}.isdisjoint(keras_names("metrics"))


def test_a_parameter_of_a_model_without_any_is_told() -> None:
    with pytest.raises(InvalidValue, match=r"takes no parameter 'units'\. It takes none\.$"):
        load_spec(lambda: net(), model_params={"units": 1}, loss="mse", optimizer="sgd")


def test_an_unknown_override_is_told() -> None:
    with pytest.raises(InvalidValue, match="Did you mean 'optimizer'"):
        load_spec(net(), optimiser="sgd")


def test_a_users_error_in_a_factory_is_theirs(write_zoo: WriteZoo) -> None:
    text = "def custom_model(): return undefined_name\nloss = 'mse'\noptimizer = 'sgd'"
    spec = load_spec("m", model_zoo=write_zoo({"m.py": text}))
    with pytest.raises(NameError) as raised:
        spec.build_model()
    assert Path(raised.traceback[-1].path).name == "m.py"
