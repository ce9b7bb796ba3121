"""A trained model alone: what is in it, and that it needs nothing else."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from safetensors.numpy import load_file

import elasticdl
from elasticdl.artifacts.message import decode, encode
from elasticdl.artifacts.stored_model import find_trained_model
from elasticdl.errors import CorruptData, ElasticDLError, InvalidValue, NotFound
from elasticdl.storage import place
from elasticdl.tracking.events import read_events

from .conftest import Trained

ROOT = Path(__file__).parents[2]
FEATURES = {"colour": ["red", "blue"] * 20, "size": [[0.1, 0.5], [1.0, 0.2]] * 20}


def evaluate(trained: Trained, path: Any, **more: Any) -> dict[str, float]:
    more = {"log_level": "WARNING", **more}
    return elasticdl.evaluate(trained_model=str(path), data=str(trained.data), **more).metrics


def test_model_holds_all_that_it_needs_and_nothing_else(trained: Trained) -> None:
    files = sorted(p.relative_to(trained.model) for p in trained.model.rglob("*") if p.is_file())
    names = [file.as_posix() for file in files]
    assert [name for name in names if not name.startswith("saved_model/")] == [
        "model.keras",
        "params.safetensors",
        "trained_model.pb",
        "zoo/requirements.txt",
        "zoo/shop/__init__.py",
        "zoo/shop/columns.py",
        "zoo/shop/losses.py",
        "zoo/shop/model.py",
        "zoo/shop/words/colours.txt",
    ]
    assert (trained.model / "zoo/requirements.txt").read_text() == "keras\ntensorflow\n"
    message = find_trained_model(str(trained.run)).message
    assert sorted(message.files) == [name for name in names if name != "trained_model.pb"]


def test_message_tells_how_the_model_was_trained(trained: Trained) -> None:
    stored = find_trained_model(str(trained.run))
    message = stored.message
    assert (message.model_def, message.params_filename) == (
        "shop.model.custom_model",
        "params.safetensors",
    )
    assert message.model_def_params == "units=6, lr=0.02"
    assert (message.input_function, message.loss, message.optimizer) == (
        "dataset_fn",
        "loss",
        "optimizer",
    )
    assert message.columns == ("width", "height", "colour", "price")
    assert (message.steps, message.chosen) == (12, "last")
    last = {name: values[-1] for name, values in trained.result.history.items()}
    assert message.metrics == pytest.approx(last)
    assert "val_mae" in message.metrics
    assert message.versions["keras"] == keras.__version__
    assert stored.job["model_params"] == "units=6, lr=0.02"


def test_evaluation_needs_neither_the_zoo_nor_the_run(trained: Trained, tmp_path: Path) -> None:
    assert not trained.zoo.exists()
    expected = trained.result.metrics
    for path in (trained.run, trained.model, trained.model / "model.keras"):
        assert evaluate(trained, path) == pytest.approx(expected, rel=1e-5)
    elsewhere = shutil.copytree(trained.model, tmp_path / "elsewhere")
    for path in (*elsewhere.rglob("*"), elsewhere):
        path.chmod(0o555 if path.is_dir() else 0o444)
    assert evaluate(trained, elsewhere) == pytest.approx(expected, rel=1e-5)


def test_model_at_a_remote_address_is_used_from_there(trained: Trained, tmp_path: Path) -> None:
    there = place("memory://bucket/models/one")
    there.fs.put(str(trained.model), there.path, recursive=True)
    expected = trained.result.metrics
    assert evaluate(trained, "memory://bucket/models/one") == pytest.approx(expected, rel=1e-5)
    there.fs.rm_file((there / "zoo" / "shop" / "losses.py").path)
    with pytest.raises(CorruptData, match=r"not whole: zoo/shop/losses\.py is missing"):
        evaluate(trained, "memory://bucket/models/one")


def test_output_at_a_remote_address_holds_the_model(trained: Trained, tmp_path: Path) -> None:
    x = np.random.default_rng(0).random((40, 2))
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    elasticdl.train(model, (x, x[:, :1]), loss="mse", optimizer="sgd", output="memory://bucket/far")
    found = elasticdl.evaluate(data=(x, x[:, :1]), loss="mse", trained_model="memory://bucket/far")
    assert found.metrics["loss"] == pytest.approx(np.mean((model(x) - x[:, :1]) ** 2), rel=1e-5)


class NoConfig(keras.Model):
    """Keras cannot know what it was made of."""

    def __init__(self, rule: Any) -> None:
        super().__init__()
        self.dense, self.rule = keras.layers.Dense(1), rule

    def call(self, inputs: Any) -> Any:
        return self.rule(self.dense(inputs))


@pytest.mark.parametrize(
    ("name", "last"), [("NoConfig", "serializable."), ("NoConfigButALongName", "...")]
)
def test_model_that_keras_cannot_save_is_told_with_the_whole_reason(
    tmp_path: Path, name: str, last: str
) -> None:
    model = type(name, (NoConfig,), {})(tf.abs)
    x = np.random.default_rng(0).random((40, 2))
    run = tmp_path / "run"
    elasticdl.train(model, (x, x[:, :1]), loss="mse", optimizer="sgd", output=str(run))
    told = [e["message"] for e in read_events(run / "events.jsonl") if e["event"] == "warning"]
    assert told == [
        f"Keras cannot save the model as model.keras: Object {name} was created by passing "
        "non-serializable argument values in `__init__()`, and therefore the object must override "
        f"`get_config()` in order to be {last} Its class needs a get_config. "
        "Its parameters are in params.safetensors."
    ]
    assert not (run / "model" / "model.keras").exists()


def test_tensorflow_alone_runs_the_saved_model_as_the_model_does(trained: Trained) -> None:
    program = """
import json, sys
import tensorflow as tf
serve = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
features = {name: tf.constant(values) for name, values in json.loads(sys.argv[2]).items()}
(output,) = serve(**features).values()
assert "elasticdl" not in sys.modules
print(json.dumps(output.numpy().tolist()))
"""
    command = [sys.executable, "-c", program, trained.model / "saved_model", json.dumps(FEATURES)]
    env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    model = keras.models.load_model(trained.model / "model.keras", compile=False)
    expected = model({n: tf.constant(v) for n, v in FEATURES.items()}, training=False)
    # Its RandomFlip is for training only: left on, it would swap width and height.
    np.testing.assert_allclose(json.loads(done.stdout), expected, rtol=1e-5)


def test_parameters_are_those_of_the_keras_file(trained: Trained) -> None:
    parameters = load_file(trained.model / "params.safetensors")
    model = keras.models.load_model(trained.model / "model.keras", compile=False)
    for layer in ("dense", "dense_1"):
        kernel = parameters[f"model/{layer}/kernel"]
        assert any(np.array_equal(kernel, weight) for weight in model.get_weights())


def test_models_are_told_apart_by_metric(tmp_path: Path) -> None:
    x = np.linspace(0, 1, 40, dtype="float32")[:, None]
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])

    class Spoil(keras.callbacks.Callback):
        """Makes the second epoch worse than the first."""

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            if epoch == 0:
                self.model.set_weights([np.full((1, 1), 9.0), np.zeros(1)])

    options: dict[str, Any] = {"loss": "mse", "optimizer": keras.optimizers.SGD(1e-9)}
    options |= {"validation_data": (x, x), "callbacks": [Spoil()], "num_epochs": 2}
    result = elasticdl.train(model, (x, x), **options, output="run", export_metric="val_loss")
    losses = result.history["val_loss"]
    assert losses[0] < losses[1]
    for directory, loss in (("run/model", losses[0]), ("run/model_last", losses[1])):
        found = elasticdl.evaluate(data=(x, x), loss="mse", trained_model=directory)
        assert found.metrics["loss"] == pytest.approx(loss, rel=1e-5)
        served = keras.layers.TFSMLayer(f"{directory}/saved_model", "serving_default")
        ((output),) = served(x).values()
        assert np.mean((output - x) ** 2) == pytest.approx(loss, rel=1e-5)
    assert find_trained_model("run").message.chosen.startswith("best val_loss=")
    assert find_trained_model("run/model_last").message.chosen == "last"


def torn(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-10])


def altered(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize("name", ["params.safetensors", "zoo/shop/model.py"])
@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (Path.unlink, "is not whole: {} is missing"),
        (torn, "is damaged: {} is not what was written"),
        (altered, "is damaged: {} is not what was written"),
    ],
)
def test_damage_is_found_before_anything_runs(
    trained: Trained, copied: Path, name: str, damage: Any, said: str
) -> None:
    damage(copied / name)
    with pytest.raises(CorruptData, match=said.format(name)) as caught:
        evaluate(trained, copied)
    assert str(copied) in str(caught.value)


def test_file_that_was_added_to_the_code_is_refused(trained: Trained, copied: Path) -> None:
    (copied / "zoo" / "tensorflow.py").write_text("print('taken over')\n")
    with pytest.raises(CorruptData, match=r"altered: zoo/tensorflow\.py does not belong to it"):
        evaluate(trained, copied)


def change(directory: Path, **fields: Any) -> None:
    file = directory / "trained_model.pb"
    message = decode(file.read_bytes(), "x")
    file.write_bytes(encode(dataclasses.replace(message, **fields)))


@pytest.mark.parametrize(
    ("fields", "error", "said"),
    [
        (
            {"format_version": 7, "elasticdl_version": "9.9"},
            InvalidValue,
            "written by ElasticDL 9.9, in version 7 of its format",
        ),
        ({"format_version": 0}, CorruptData, "is not the message of a trained model"),
        ({"format_version": -1}, CorruptData, "is not the message of a trained model"),
        ({"params_filename": "../x"}, CorruptData, r"parameters are in \.\./x, which is none of"),
        ({"job": "{"}, CorruptData, "The job in .* is damaged"),
        ({"files": {"../../zoo/x.py": "00"}}, CorruptData, "a file outside of it"),
        ({"files": {"/etc/passwd": "00"}}, CorruptData, "a file outside of it"),
    ],
)
def test_message_that_cannot_be_used_is_refused(
    trained: Trained, copied: Path, fields: Any, error: type[ElasticDLError], said: str
) -> None:
    change(copied, **fields)
    with pytest.raises(error, match=said):
        evaluate(trained, copied)


def test_parameters_are_in_the_file_that_the_message_names(trained: Trained, copied: Path) -> None:
    (copied / "params.safetensors").rename(copied / "other.safetensors")
    files = decode((copied / "trained_model.pb").read_bytes(), "x").files
    names = {name.replace("params.", "other."): digest for name, digest in files.items()}
    change(copied, params_filename="other.safetensors", files=names)
    assert evaluate(trained, copied) == evaluate(trained, trained.model)


def test_message_that_is_torn_or_missing_is_told(trained: Trained, copied: Path) -> None:
    torn(copied / "trained_model.pb")
    with pytest.raises(CorruptData, match="is not the message of a trained model"):
        evaluate(trained, copied)
    (copied / "trained_model.pb").unlink()
    with pytest.raises(NotFound, match=r"holds params\.safetensors and model\.keras, but no"):
        evaluate(trained, copied)
    with pytest.raises(NotFound, match=r"holds no trained_model\.pb"):
        evaluate(trained, trained.data.parent)
    with pytest.raises(NotFound, match="is a file, and no Keras file"):
        evaluate(trained, trained.data)
    with pytest.raises(NotFound, match="it does not exist"):
        evaluate(trained, "nowhere")


def test_zoo_that_changes_during_the_training_does_not_change_what_is_kept() -> None:
    Path("zoo").mkdir()
    file = Path("zoo/edited.py")
    file.write_text(
        "import keras\nfrom pathlib import Path\n"
        "def custom_model(): return keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])\n"
        "loss = 'mse'\noptimizer = 'sgd'\n"
        "class Edit(keras.callbacks.Callback):\n"
        "    def on_train_begin(self, logs=None):\n"
        "        Path(__file__).unlink()\n"
        "def callbacks(): return [Edit()]\n"
    )
    before = file.read_bytes()
    x = np.ones((10, 2))
    elasticdl.train("edited.custom_model", (x, x[:, :1]), model_zoo="zoo", output="run")
    assert not file.exists()
    assert Path("run/model/zoo/edited.py").read_bytes() == before
    assert "warning" not in Path("run/events.jsonl").read_text()


def test_losses_of_several_outputs_are_named() -> None:
    Path("zoo").mkdir()
    Path("zoo/two.py").write_text(
        "import keras\n"
        "def custom_model():\n"
        "    x = keras.Input((2,))\n"
        "    return keras.Model(x, {name: keras.layers.Dense(1, name=name)(x) for name in 'ab'})\n"
        "loss = {'a': 'mse', 'b': keras.losses.MeanAbsoluteError()}\noptimizer = 'sgd'\n"
    )
    x = np.ones((10, 2))
    data = (x, {"a": x[:, :1], "b": x[:, :1]})
    elasticdl.train("two.custom_model", data, model_zoo="zoo", output="run")
    assert find_trained_model("run").message.loss == "a: mse, b: MeanAbsoluteError"


def test_parameters_of_any_literal_are_kept_and_others_told() -> None:
    Path("zoo").mkdir()
    Path("zoo/params.py").write_text(
        "import keras\n"
        "def custom_model(sizes, names=None, rate=0.0):\n"
        "    assert sizes == {1: (2, 3)}, sizes\n"
        "    return keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])\n"
        "loss = 'mse'\noptimizer = 'sgd'\n"
    )
    x = np.ones((10, 2))
    options: dict[str, Any] = {"data": (x, x[:, :1]), "log_level": "WARNING"}
    params: dict[str, Any] = {"sizes": {1: (2, 3)}, "names": 'it\'s, = "x"', "rate": -1e-9}
    train = {"model": "params.custom_model", "model_zoo": "zoo", **options}
    elasticdl.train(**train, output="run", model_params=params)
    assert elasticdl.evaluate(trained_model="run", **options).metrics["loss"] >= 0
    params["rate"] = np.float32(1)
    result = elasticdl.train(**train, output="told", model_params=params)
    told = [e["message"] for e in read_events(result.output / "events.jsonl") if "message" in e]
    assert told == [
        "The trained model lacks its model_params: they hold something else than numbers, strings and "
        "lists of them. Give them again when the model is used."
    ]
    assert elasticdl.evaluate(trained_model="told", model_params=params, **options).metrics


@pytest.mark.parametrize(
    ("model", "data"),
    [
        ("mnist.mnist_spec.MnistSpec", "digits"),
        ("mnist.mnist_subclass.MnistModel", "digits"),
        ("census.census_wide_deep.custom_model", "census"),
        ("regressor.DNN", "diabetes"),
    ],
)
def test_every_form_of_model_file_is_used_alone(model: str, data: str, tmp_path: Path) -> None:
    there = ROOT / "model_zoo" / "data" / data
    end = ".csv" if data != "digits" else ""
    options = {"training_data": f"{there}/train{end}", "validation_data": f"{there}/test{end}"}
    zoo = shutil.copytree(ROOT / "model_zoo", "zoo", ignore=shutil.ignore_patterns("data"))
    result = elasticdl.train(model, model_zoo=str(zoo), max_step=2, output="run", **options)
    shutil.rmtree(zoo)
    again = elasticdl.evaluate(data=options["validation_data"], trained_model="run/model")
    assert again.metrics == pytest.approx(result.metrics, rel=1e-4)


def test_credentials_in_addresses_are_not_kept(tmp_path: Path) -> None:
    data = place("memory://me:secret@bucket/data/points.parquet")
    x = np.ones(10, "float32")
    with data.fs.open(data.path, "wb") as file:
        pq.write_table(pa.table({"x": x, "y": x}), file)
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    elasticdl.train(
        model,
        str(data),
        dataset_fn=lambda dataset, mode: dataset.map(lambda row: ([row["x"]], [row["y"]])),
        loss="mse",
        optimizer="sgd",
        output="run",
    )
    assert b"secret" not in Path("run/model/trained_model.pb").read_bytes()
    assert b"bucket/data/points.parquet" in Path("run/model/trained_model.pb").read_bytes()
