"""Models without a zoo: Python objects, bare Keras files, bare SavedModels, and code inside of them."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import elasticdl
from elasticdl.artifacts.bare_model import load_bare_model
from elasticdl.errors import ContractError, CorruptData, DataError, InvalidValue
from elasticdl.storage import place

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
"""Keras' own, when it saves."""

X = np.random.default_rng(0).random((30, 2)).astype("float32")
Y = X.sum(axis=1, keepdims=True)


def make_model() -> keras.Model:
    return keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])


def error_of(model: Any) -> float:
    return float(np.mean((model(X) - Y) ** 2))


def loss_of(path: str, **more: Any) -> float:
    options = {"loss": "mse", "log_level": "WARNING", **more}
    return elasticdl.evaluate(data=(X, Y), trained_model=path, **options).metrics["loss"]


@pytest.mark.parametrize("address", ["", "memory://bare/"])
def test_keras_file_is_evaluated_from_anywhere(address: str) -> None:
    model = make_model()
    model.save("some.keras")
    if address:
        place(address).fs.put_file("some.keras", place(f"{address}some.keras").path)
    assert loss_of(f"{address}some.keras") == pytest.approx(error_of(model), rel=1e-5)


def test_keras_file_that_is_compiled_brings_its_loss() -> None:
    model = make_model()
    model.compile("sgd", "mae", metrics=["mse"])
    model.save("some.keras")
    metrics = elasticdl.evaluate(data=(X, Y), trained_model="some.keras").metrics
    assert metrics["loss"] == pytest.approx(np.mean(np.abs(model(X) - Y)), rel=1e-5)


def test_keras_file_whose_loss_cannot_be_made_takes_another() -> None:
    model = make_model()

    def own(labels: Any, outputs: Any) -> Any:
        return keras.ops.mean(labels - outputs)

    model.compile("sgd", own)
    model.save("own_loss.keras")
    assert loss_of("own_loss.keras") == pytest.approx(error_of(model), rel=1e-5)
    model.compile(None, "mse")
    model.save("no_optimizer.keras")
    assert loss_of("no_optimizer.keras") == pytest.approx(error_of(model), rel=1e-5)


@pytest.mark.parametrize("address", ["", "memory://bare/"])
def test_saved_model_is_evaluated_from_anywhere(address: str) -> None:
    model = make_model()
    model.export("saved", verbose=False)
    if address:
        place(address).fs.put("saved", place(f"{address}saved").path, recursive=True)
    assert loss_of(f"{address}saved") == pytest.approx(error_of(model), rel=1e-5)


def test_saved_model_gets_features_by_name() -> None:
    inputs = {name: keras.Input((1,), name=name) for name in ("a", "b")}
    model = keras.Model(inputs, keras.layers.Subtract()([inputs["a"], inputs["b"]]))
    model.export("saved", verbose=False)
    features = {"b": X[:, 1:], "a": X[:, :1]}
    options: dict[str, Any] = {"trained_model": "saved", "loss": "mse"}
    found = elasticdl.evaluate(data=(features, np.zeros((30, 1))), **options).metrics["loss"]
    assert found == pytest.approx(np.mean((X[:, 0] - X[:, 1]) ** 2), rel=1e-4)
    with pytest.raises(
        ContractError,
        match=r"^The SavedModel saved takes the features a, b, and the data has 1 without a name",
    ):
        elasticdl.evaluate(data=({"c": X}, Y), **options)


def with_lambda() -> keras.Model:
    # The code that a Lambda carries is run when it is called.
    return keras.Sequential([keras.Input((2,)), keras.layers.Lambda(lambda x: x[:, :1])])


def test_code_in_a_keras_file_is_run_for_those_who_trust_it() -> None:
    with_lambda().save("code.keras")
    with pytest.raises(InvalidValue, match=r"code\.keras holds Python code, a Lambda.*--trust"):
        loss_of("code.keras")
    assert loss_of("code.keras", trust=True) == pytest.approx(
        error_of(lambda x: x[:, :1]), rel=1e-5
    )


def test_python_in_a_saved_model_is_refused_unless_it_is_trusted() -> None:
    module = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="inputs")])
    def serve(inputs: Any) -> Any:
        out = tf.numpy_function(lambda x: x[:, :1], [inputs], tf.float32)
        return {"output_0": tf.ensure_shape(out, [None, 1])}

    module.serve = serve
    tf.saved_model.save(module, "code", signatures={"serving_default": serve})
    with pytest.raises(
        InvalidValue, match=r"runs code or touches files.*\(\w*PyFunc\w*\).*--trust"
    ):
        loss_of("code")
    assert loss_of("code", trust=True) >= 0


def saved_with(path: str, effect: Any, *held: Any) -> None:
    """A SavedModel that does something on the way."""
    module = tf.Module()
    module.held = held

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="inputs")])
    def serve(inputs: Any) -> Any:
        made = effect()
        made = [] if made is None else [made]
        with tf.control_dependencies(made):
            return {"output_0": inputs[:, :1] + 0.0}

    module.serve = serve
    tf.saved_model.save(module, path, signatures={"serving_default": serve})


@pytest.mark.parametrize(
    ("name", "effect"),
    [
        ("WriteFile", lambda: tf.io.write_file("written", "x")),
        ("ReadFile", lambda: tf.io.read_file("secret")),
        ("MatchingFiles", lambda: tf.io.matching_files("/etc/*")),
        ("SaveV2", lambda: tf.raw_ops.SaveV2(
            prefix="written", tensor_names=["a"], shape_and_slices=[""], tensors=[tf.ones(1)])),
        ("RestoreV2", lambda: tf.raw_ops.RestoreV2(
            prefix="secret", tensor_names=["a"], shape_and_slices=[""], dtypes=[tf.float32])[0]),
        ("PrintV2", lambda: tf.print("x", output_stream="file://written")),
        ("TextLineDataset", lambda: tf.data.TextLineDataset("secret").reduce(0, lambda n, _: n + 1)),
    ],
)  # fmt: skip
def test_graph_that_touches_files_is_refused_unless_it_is_trusted(name: str, effect: Any) -> None:
    Path("secret").write_text("x")
    saved_with("saved", effect)
    with pytest.raises(InvalidValue, match=rf"touches files when it is used \(.*{name}.*--trust"):
        loss_of("saved")
    assert not list(Path().glob("written*"))


def test_graph_that_touches_files_is_used_by_those_who_trust_it() -> None:
    saved_with("saved", lambda: tf.io.write_file("written", "x"))
    assert loss_of("saved", trust=True) >= 0
    assert Path("written").read_text() == "x"


def test_table_of_the_models_own_assets_is_no_reason_to_refuse() -> None:
    Path("words.txt").write_text("a\nb\n")
    whole, index = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
    words = tf.lookup.TextFileInitializer("words.txt", tf.string, whole, tf.int64, index)
    table = tf.lookup.StaticHashTable(words, -1)
    saved_with("saved", lambda: table.lookup(tf.constant(["b"])), table)
    Path("words.txt").unlink()
    assert loss_of("saved") == pytest.approx(error_of(lambda x: x[:, :1]), rel=1e-5)


@pytest.mark.parametrize(
    ("features", "said"),
    [
        (np.ones((30, 3), "float32"), r"takes float32 \[any, 2\], and the data gives float32 \[\d+, 3\]"),
        (np.array([["a", "b"]] * 30), r"takes float32 \[any, 2\], and the data gives string"),
    ],
)  # fmt: skip
def test_features_that_do_not_fit_a_graph_are_told(features: Any, said: str) -> None:
    make_model().export("saved", verbose=False)
    with pytest.raises(DataError, match=said):
        loss_of_data("saved", features)


def loss_of_data(path: str, features: Any) -> float:
    options: dict[str, Any] = {"loss": "mse", "log_level": "WARNING"}
    return elasticdl.evaluate(data=(features, Y), trained_model=path, **options).metrics["loss"]


def test_code_that_old_keras_left_in_a_saved_model_is_refused() -> None:
    make_model().export("saved", verbose=False)
    Path("saved/keras_metadata.pb").write_bytes(b'\n\x10{"class_name": "Lambda", "config": ""}')
    with pytest.raises(InvalidValue, match=r"Lambda layer \(keras_metadata\.pb\).*--trust"):
        loss_of("saved")


def test_files_that_are_torn_are_told() -> None:
    model = make_model()
    model.save("some.keras")
    Path("torn.keras").write_bytes(Path("some.keras").read_bytes()[:-100])
    with pytest.raises(CorruptData, match=r"torn\.keras is not a whole Keras file: it was cut off"):
        loss_of("torn.keras")
    Path("text.keras").write_text("hello")
    with pytest.raises(CorruptData, match=r"text\.keras is not a whole .*: it is no zip archive"):
        loss_of("text.keras")
    with zipfile.ZipFile("other.keras", "w") as archive:
        archive.writestr("a.txt", "a")
    with pytest.raises(CorruptData, match=r"a zip archive without a model's config\.json"):
        loss_of("other.keras")
    model.export("saved", verbose=False)
    graph = Path("saved/saved_model.pb")
    graph.write_bytes(graph.read_bytes()[:-100])
    with pytest.raises(CorruptData, match=r"SavedModel .*saved is damaged"):
        loss_of("saved")


def test_saved_model_that_lacks_its_variables_or_its_signature_is_told() -> None:
    make_model().export("saved", verbose=False)
    shutil.rmtree("saved/variables")
    with pytest.raises(CorruptData, match="cannot be loaded"):
        loss_of("saved")
    tf.saved_model.save(tf.Module(), "empty")
    with pytest.raises(ContractError, match="no signature serving_default"):
        loss_of("empty")


def test_keras_file_that_needs_code_says_whose() -> None:
    class Own(keras.layers.Layer):
        def call(self, inputs: Any) -> Any:
            return inputs

    keras.Sequential([keras.Input((1,)), Own()]).save("own.keras")
    with pytest.raises(ContractError, match=r"needs the Python code of Own.*--model_def"):
        loss_of("own.keras")


def test_model_given_as_an_object_is_used_without_it() -> None:
    model = make_model()
    elasticdl.train(model, (X, Y), loss="mse", optimizer="sgd", output="run")
    assert not Path("run/model/zoo").exists()
    assert loss_of("run") == pytest.approx(error_of(model), rel=1e-5)
    assert loss_of("run", model=make_model()) == pytest.approx(error_of(model), rel=1e-5)


def test_model_of_own_classes_or_code_is_used_by_its_graph() -> None:
    class Own(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense = keras.layers.Dense(1)

        def call(self, inputs: Any) -> Any:
            return keras.ops.abs(self.dense(inputs))

    model = Own()
    elasticdl.train(model, (X, Y), loss="mse", optimizer="sgd", output="own")
    assert loss_of("own") == pytest.approx(error_of(model), rel=1e-5)
    code = keras.Sequential([keras.Input((2,)), keras.layers.Lambda(lambda x: x + 1), model])
    elasticdl.train(code, (X, Y), loss="mse", optimizer="sgd", output="code")
    assert loss_of("code") == pytest.approx(error_of(code), rel=1e-5)


def test_graph_gets_each_feature_by_its_name_whatever_the_name_is() -> None:
    class Own(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense = keras.layers.Dense(1)

        def call(self, inputs: Any) -> Any:
            return self.dense(inputs["a b"] - 2 * inputs["a.b"] + 3 * inputs["_c"])

    features = {"a.b": X[:, :1], "a b": X[:, 1:], "_c": X[:, :1] ** 2}
    model = Own()
    elasticdl.train(model, (features, Y), loss="mse", optimizer="sgd", output="run")
    found = elasticdl.evaluate(data=(features, Y), loss="mse", trained_model="run").metrics
    assert found["loss"] == pytest.approx(np.mean((model(features) - Y) ** 2), rel=1e-5)


def test_dataset_function_given_as_an_object_must_be_given_again() -> None:
    def dataset_fn(dataset: Any, mode: Any) -> Any:
        return dataset.map(lambda x, y: (x * 2, y))

    model = make_model()
    options: dict[str, Any] = {"loss": "mse", "dataset_fn": dataset_fn}
    elasticdl.train(model, (X, Y), optimizer="sgd", output="run", **options)
    with pytest.raises(InvalidValue, match="a dataset_fn that was given as a Python object"):
        loss_of("run")
    found = elasticdl.evaluate(data=(X, Y), trained_model="run", **options).metrics["loss"]
    assert found == pytest.approx(error_of(lambda x: model(2 * x)), rel=1e-5)


def test_dataset_function_of_a_spec_that_was_an_object_is_missed_too() -> None:
    class Spec(elasticdl.ElasticDLSpec):
        def create_model(self) -> keras.Model:
            return make_model()

        def create_optimizer(self) -> Any:
            return keras.optimizers.SGD()

        def create_loss(self, outputs: Any, labels: Any) -> Any:
            return tf.reduce_mean((outputs - labels) ** 2)

        def create_dataset(self, dataset: Any, mode: Any) -> Any:
            return dataset.map(lambda x, y: (x * 2, y))

    elasticdl.train(Spec, (X, Y), output="run")
    with pytest.raises(InvalidValue, match="a dataset_fn that was given as a Python object"):
        loss_of("run")
    assert loss_of("run", model=Spec, loss=None) > 0


def test_directory_that_holds_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="Give it again in Python"):
        load_bare_model(tmp_path)
