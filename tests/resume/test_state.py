"""What a checkpoint remembers beside the weights, and what a run keeps of the best version."""

from __future__ import annotations

import json
import random
from collections import deque
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import elasticdl
from elasticdl.artifacts.background import Background
from elasticdl.artifacts.checkpoint import Checkpoints
from elasticdl.engine.remember import plain_attributes, set_plain_attributes
from elasticdl.errors import (
    DataError,
    InvalidValue,
    NotFound,
    OutputExists,
    StorageFailure,
    UnknownName,
)
from elasticdl.storage import place


@pytest.fixture(autouse=True)
def in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def points() -> Any:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 4)).astype("float32")
    return x, rng.normal(size=(200, 1)).astype("float32")


def make_model(units: int = 3) -> keras.Model:
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(units), keras.layers.Dense(1)])


def train(points: Any, model: Any = make_model, **options: Any) -> elasticdl.Result:
    defaults = {
        "loss": "mse",
        "optimizer": keras.optimizers.Adam(0.05),
        "eval_metrics_fn": ["mae"],
        "minibatch_size": 20,
        "seed": 5,
        "validation_data": points,
    }
    return elasticdl.train(model, points, **{**defaults, **options})


def parameters(path: str | Path) -> bytes:
    return Path(path, "params.safetensors").read_bytes()


def early_stopping() -> list[Any]:
    return [
        keras.callbacks.EarlyStopping(
            "val_loss", patience=3, min_delta=10.0, restore_best_weights=True
        )
    ]


def plateau() -> list[Any]:
    return [keras.callbacks.ReduceLROnPlateau("val_loss", factor=0.5, patience=2, min_delta=10.0)]


def own() -> list[Any]:
    return [elasticdl.callbacks.EarlyStopping("mae", patience=3, min_delta=10.0)]


@pytest.fixture(scope="module", params=[early_stopping, plateau, own])
def counted(request: Any, points: Any, tmp_path_factory: Any, tensorflow: None) -> Any:
    """Callbacks that count, and a run with them that nothing has stopped."""
    output = tmp_path_factory.mktemp("whole") / "run"
    return request.param, train(points, num_epochs=8, callbacks=request.param, output=output)


@pytest.mark.filterwarnings("ignore:__array__ implementation")  # of Keras, with numpy 2
@pytest.mark.parametrize("stop", [15, 20])
def test_callbacks_go_on_counting_in_a_resumed_run(points: Any, counted: Any, stop: int) -> None:
    callbacks, whole = counted
    train(
        points, num_epochs=8, callbacks=callbacks, output="cut", max_step=stop, checkpoint_steps=5
    )
    resumed = train(points, num_epochs=8, callbacks=callbacks, output="cut", resume=True)
    assert resumed.steps == whole.steps
    assert parameters("cut/model") == parameters(whole.model_path)


class Decay(keras.callbacks.Callback):
    """Changes the learning rate at every occasion that there is."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[int] = set()
        self.last: deque[float] = deque(maxlen=2)
        self.factor = tf.Variable(1.0)

    def scale(self, factor: float) -> None:
        self.factor.assign(self.factor * factor)
        self.model.optimizer.learning_rate = 0.05 * float(self.factor.numpy())

    def on_train_begin(self, logs: Any = None) -> None:
        self.scale(0.9)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.seen.add(epoch)
        self.last.append(random.random())
        self.scale(0.8)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.scale(0.7 + 0.1 * len(self.seen) / 8 + 0.01 * sum(self.last))


@pytest.mark.parametrize("stop", [15, 20])
def test_callbacks_are_told_of_each_beginning_once(points: Any, stop: int) -> None:
    rates = []
    for output, more in [("whole", [{}]), ("cut", [{"max_step": stop}, {"resume": True}])]:
        for options in more:
            optimizer = keras.optimizers.Adam(0.05)
            train(
                points,
                num_epochs=4,
                callbacks=lambda: [Decay()],
                optimizer=optimizer,
                checkpoint_steps=5,
                output=output,
                **options,
            )
        rates.append(float(optimizer.learning_rate.numpy()))
    assert rates[0] == rates[1]
    assert parameters("cut/model") == parameters("whole/model")
    whole, cut = (Checkpoints(place(f"{o}/checkpoints")).require_latest() for o in ("whole", "cut"))
    assert whole.tensors.keys() == cut.tensors.keys()
    for name, value in whole.tensors.items():
        np.testing.assert_array_equal(value, cut.tensors[name], err_msg=name)


class Raw(keras.layers.Layer):
    """Keeps state in variables that Keras does not know."""

    def __init__(self) -> None:
        super().__init__()
        self.count = tf.Variable(0.0, trainable=False)
        self.generator = tf.random.Generator.from_seed(3)

    def call(self, inputs: Any, training: bool = False) -> Any:
        if training:
            self.count.assign_add(1.0)
            inputs = inputs + 0.1 * self.generator.normal(tf.shape(inputs))
        return inputs * (1.0 + 0.01 * self.count)


def raw_model() -> keras.Model:
    inputs = keras.Input((4,))
    return keras.Model(inputs, keras.layers.Dense(1)(Raw()(inputs)))


def test_variables_that_keras_does_not_know_are_kept(points: Any) -> None:
    whole = train(points, raw_model, num_epochs=2, output="whole")
    train(points, raw_model, num_epochs=2, output="cut", max_step=7, checkpoint_steps=7)
    train(points, raw_model, num_epochs=2, output="cut", resume=True)
    assert parameters("cut/model") == parameters("whole/model")
    again = elasticdl.evaluate(
        raw_model, points, loss="mse", eval_metrics_fn=["mae"], trained_model="whole"
    )
    assert again.metrics == pytest.approx(whole.metrics, abs=1e-6)


def test_a_checkpoint_dir_with_checkpoints_of_another_run_is_refused(points: Any) -> None:
    options = {"checkpoint_steps": 5, "checkpoint_dir": "kept"}
    train(points, output="first", **options)
    with pytest.raises(OutputExists, match="holds checkpoints of another run, step-00000010"):
        train(points, output="second", seed=9, **options)
    train(points, output="second", seed=9, max_step=5, overwrite=True, **options)
    assert [p.name for p in Path("kept").iterdir()] == ["step-00000005"]
    with pytest.raises(InvalidValue, match=r"of another run: its seed is 9, that of first is 5"):
        train(points, output="first", resume=True, **options)


def test_one_checkpoint_can_be_named_to_start_from(points: Any) -> None:
    train(points, output="run", checkpoint_steps=5)
    for path in ("run", "run/checkpoints", "run/checkpoints/step-00000010"):
        train(points, output="other", overwrite=True, checkpoint_dir_for_init=path)
    with pytest.raises(NotFound, match="it does not exist"):
        train(points, output="third", checkpoint_dir_for_init="nowhere")


def test_plain_attributes_come_back_as_they_were() -> None:
    class Owner:
        pass

    owner, other = Owner(), Owner()
    owner.__dict__.update(
        count=3,
        best=float("-inf"),
        name="x",
        nothing=None,
        scalar=np.float32(1.5),
        weights=[np.ones((2, 3)), np.zeros(2, np.int64)],
        by_name={"a": (1, np.bool_(True))},
        function=print,
        compare=keras.ops.less,
        texts=np.array(["no tensor"]),
    )
    values, arrays = plain_attributes(owner)
    set_plain_attributes(other, json.loads(json.dumps(values)), arrays)
    assert not hasattr(other, "function") and not hasattr(other, "texts")
    assert (other.count, other.best, other.name, other.nothing) == (3, float("-inf"), "x", None)
    assert other.compare is keras.ops.less
    assert isinstance(other.scalar, np.float32) and other.scalar == 1.5
    np.testing.assert_array_equal(other.weights[0], np.ones((2, 3)))
    assert other.weights[1].dtype == np.int64
    assert other.by_name == {"a": (1, True)}


@pytest.mark.parametrize(("mode", "better"), [("min", min), ("max", max)])
def test_the_best_version_and_the_last_are_exported(points: Any, mode: str, better: Any) -> None:
    result = train(points, num_epochs=4, export_metric="val_mae", export_mode=mode, output="run")
    maes = result.history["val_mae"]
    assert len(set(maes)) == 4

    def mae(path: str) -> float:
        return elasticdl.evaluate(
            make_model, points, loss="mse", eval_metrics_fn=["mae"], trained_model=path
        ).metrics["mae"]

    assert mae("run") == pytest.approx(better(maes), abs=1e-6)
    assert mae("run/model_last") == pytest.approx(maes[-1], abs=1e-6)


def test_the_best_version_survives_a_resume(points: Any) -> None:
    options = {"num_epochs": 6, "export_metric": "loss", "export_mode": "max"}  # the first is best
    train(points, **options, output="whole")
    train(points, **options, output="cut", max_step=35, checkpoint_steps=35)
    train(points, **options, output="cut", resume=True)
    assert parameters("cut/model") == parameters("whole/model")
    assert parameters("cut/model_last") == parameters("whole/model_last")
    assert parameters("cut/model") != parameters("cut/model_last")


def test_a_metric_to_export_by_is_checked_before_the_training(points: Any) -> None:
    with pytest.raises(UnknownName, match=r"'maee' is not a metric.*Did you mean 'mae'"):
        train(points, export_metric="val_maee", output="run")
    assert not Path("run").exists()
    with pytest.raises(InvalidValue, match="Give --validation_data"):
        train(points, export_metric="val_mae", validation_data=None)


def test_resuming_with_another_model_names_the_variables_that_differ(points: Any) -> None:
    train(points, output="run", max_step=5, checkpoint_steps=5)
    with pytest.raises(DataError, match=r"dense/kernel has the shape \(4, 3\) instead of \(4, 7\)"):
        train(points, lambda: make_model(7), output="run", resume=True)
    with pytest.raises(DataError, match="dense_1/kernel is not in this model"):
        train(
            points,
            lambda: keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)]),
            output="run",
            resume=True,
        )


def test_weights_of_another_model_to_start_from_are_refused(points: Any) -> None:
    train(points, output="run", max_step=5, checkpoint_steps=5)
    with pytest.raises(DataError, match="The saved weights are of another model"):
        train(points, lambda: make_model(7), checkpoint_dir_for_init="run", output="other")


def test_an_altered_manifest_is_skipped_like_altered_tensors(points: Any) -> None:
    train(points, output="run", max_step=10, checkpoint_steps=5)
    manifest = Path("run/checkpoints/step-00000010/manifest.json")
    content = json.loads(manifest.read_text())
    content["state"]["progress"]["step"] = 9
    manifest.write_text(json.dumps(content))
    checkpoint, faults = Checkpoints(place("run/checkpoints")).latest()
    assert checkpoint is not None and checkpoint.step == 5
    assert len(faults) == 1 and "its checksum does not fit" in faults[0]


def test_a_checkpoint_of_a_newer_format_says_so(points: Any) -> None:
    store = Checkpoints(place("checkpoints"))
    store.save(1, {"x": np.ones(2)}, {})
    manifest = Path("checkpoints/step-00000001/manifest.json")
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "version": 99}))
    checkpoint, faults = store.latest()
    assert checkpoint is None and "is of the format 99" in faults[0]


def test_an_output_that_may_not_be_written_to_is_named(points: Any) -> None:
    with pytest.raises(StorageFailure, match="Cannot write to /proc/run"):
        train(points, output="/proc/run")


def test_what_fails_in_the_background_is_raised_by_the_next_call() -> None:
    def fail() -> None:
        raise StorageFailure("no space")

    background = Background()
    background.submit(fail)
    with pytest.raises(StorageFailure, match="no space"):
        background.wait()
    background.wait()
    done: list[int] = []
    background.submit(lambda: done.append(1))
    background.submit(lambda: done.append(2))
    background.wait()
    assert done == [1, 2]


def test_a_run_that_was_stopped_before_a_checkpoint_is_resumed_from_its_start(points: Any) -> None:
    whole = train(points, num_epochs=2, output="whole")
    job = Path("cut/job.json")
    job.parent.mkdir()
    job.write_text(Path("whole/job.json").read_text())
    resumed = train(points, output="cut", resume=True)
    assert resumed.steps == whole.steps
    assert parameters("cut/model") == parameters("whole/model")
