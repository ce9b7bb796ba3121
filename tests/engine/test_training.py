"""Training as a user relies on it: repeatable, resumable, stoppable, and told in events.jsonl."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import elasticdl
from elasticdl.callbacks import EarlyStopping, LearningRateScheduler, MaxStepsStopping
from elasticdl.errors import (
    ContractError,
    CorruptData,
    DataError,
    InvalidValue,
    NonFiniteLoss,
    NotFound,
    OutputExists,
    RunError,
    UnknownName,
)

L = keras.layers
LOSS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def make_model() -> keras.Model:
    return keras.Sequential(
        [keras.Input((4,)), L.Dense(8, activation="relu"), L.Dropout(0.5), L.Dense(3)]
    )


def shuffled(dataset: Any, mode: Any) -> Any:
    return dataset.shuffle(50) if mode == "training" else dataset


def train(data: Any, model: Any = make_model, **options: Any) -> elasticdl.Result:
    defaults = {
        "loss": LOSS,
        "optimizer": "adam",
        "minibatch_size": 32,
        "num_minibatches_per_task": 3,
        "seed": 5,
        "dataset_fn": shuffled,
    }
    return elasticdl.train(model, data, **{**defaults, **options})


def weights(result: elasticdl.Result) -> list[Any]:
    assert result.model_path is not None
    model = keras.models.load_model(result.model_path / "model.keras", compile=False)
    return list(model.get_weights())


def events(result: elasticdl.Result) -> list[dict[str, Any]]:
    assert result.output is not None
    return [json.loads(line) for line in (result.output / "events.jsonl").read_text().splitlines()]


def assert_bit_identical(one: list[Any], other: list[Any]) -> None:
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_weights_are_bit_identical_when_the_seed_is_the_same(points: Any) -> None:
    first, again, other = (train(points, num_epochs=2, seed=seed) for seed in (5, 5, 6))
    assert_bit_identical(weights(first), weights(again))
    assert any((a != b).any() for a, b in zip(weights(first), weights(other), strict=True))


def test_shuffle_differs_between_epochs_and_leases() -> None:
    applied: list[int] = []

    def loss(labels: Any, output: Any) -> Any:
        def note(values: Any) -> Any:
            applied.extend(values.tolist())
            return np.float32(0)

        with tf.control_dependencies([tf.numpy_function(note, [labels], tf.float32)]):
            return tf.reduce_mean(output)

    numbers = np.arange(64)
    train(
        (np.ones((64, 4), np.float32), numbers),
        loss=loss,
        dataset_fn=lambda dataset, mode: dataset.shuffle(1000),
        num_epochs=2,
        minibatch_size=16,
        num_minibatches_per_task=2,
        shuffle_tasks=False,
    )
    leases = [applied[-128:][i : i + 32] for i in range(0, 128, 32)]
    assert sorted(leases[0]) == sorted(leases[2]) == list(range(32))
    assert leases[0] != leases[2]
    assert [number - 32 for number in leases[1]] != leases[0]


def test_events_tell_the_run_when_it_completes(points: Any) -> None:
    result = train(
        points, num_epochs=2, validation_data=points, evaluation_steps=4, log_loss_steps=2
    )
    told = events(result)
    assert told[0]["event"] == "run_started" and told[0]["records"] == 333
    assert told[-1] == {**told[-1], "event": "run_ended", "status": "completed"}
    audits = [e for e in told if e["event"] == "epoch_audit"]
    assert [(e["epoch"], e["records"], e["applied_once"]) for e in audits] == [
        (0, 333, True),
        (1, 333, True),
    ]
    steps = [e for e in told if e["event"] == "step"]
    assert steps[-1]["step"] == 2 * 11  # ceil(333 / 32), the last of 96 * 3 + 45
    assert all(e["loss"] > 0 and e["examples_per_s"] > 0 for e in steps)
    tasks = [e["tasks"] for e in steps if e["epoch"] == 1]
    assert len({t["todo"] + t["leased"] + t["done"] for t in tasks}) == 1
    assert tasks[-1]["todo"] == tasks[-1]["leased"] == 0 < tasks[-1]["done"]
    assert [e["step"] for e in told if e["event"] == "evaluation"] == [4, 8, 11, 12, 16, 20, 22]
    assert all("loss" in e["metrics"] for e in told if e["event"] == "evaluation")
    assert all(isinstance(e["time"], float) for e in told)
    assert list((result.output or Path()).glob("tensorboard/*/events.out.tfevents*"))


@pytest.fixture(scope="module")
def whole(same_points: Any, tmp_path_factory: Any, tensorflow: None) -> elasticdl.Result:
    """A run that nothing has stopped; not to be changed."""
    return train(same_points, num_epochs=2, output=tmp_path_factory.mktemp("whole") / "run")


@pytest.mark.parametrize("stop", [1, 4, 7, 11, 13, 20])
def test_resumed_training_ends_with_the_same_bits(
    points: Any, whole: elasticdl.Result, stop: int
) -> None:
    train(points, num_epochs=2, output="cut", max_step=stop, checkpoint_steps=stop)
    resumed = train(points, num_epochs=2, output="cut", resume=True)
    assert resumed.steps == whole.steps
    assert_bit_identical(weights(whole), weights(resumed))
    assert resumed.history == whole.history
    audits = [e for e in events(resumed) if e["event"] == "epoch_audit"]
    assert {e["epoch"] for e in audits} == {0, 1}


def test_oldest_checkpoints_are_dropped_when_there_are_more_than_to_keep(points: Any) -> None:
    result = train(points, checkpoint_steps=2, keep_checkpoint_max=2)
    names = sorted(p.name for p in (result.output or Path()).glob("checkpoints/*"))
    assert names == ["step-00000008", "step-00000010"]
    everything = train(points, checkpoint_steps=2, keep_checkpoint_max=0)
    assert len(list((everything.output or Path()).glob("checkpoints/*"))) == 5


def test_altered_checkpoint_is_skipped_for_the_one_before(points: Any) -> None:
    train(points, output="run", checkpoint_steps=4, max_step=8)
    newest = Path("run/checkpoints/step-00000008/tensors.safetensors")
    content = bytearray(newest.read_bytes())
    content[-1] ^= 1
    newest.write_bytes(content)
    result = train(points, output="run", resume=True)
    told = events(result)
    assert any(e["event"] == "warning" and "checksum" in e["message"] for e in told)
    assert [e["step"] for e in told if e["event"] == "run_started"] == [0, 4]


def test_training_starts_from_another_runs_weights(points: Any) -> None:
    train(points, output="first", checkpoint_steps=11)
    frozen = train(
        points, checkpoint_dir_for_init="first/checkpoints", optimizer=keras.optimizers.SGD(0.0)
    )
    first = keras.models.load_model("first/model/model.keras", compile=False)
    assert_bit_identical(weights(frozen), first.get_weights())


def test_training_stops_when_the_steps_are_used_up(points: Any) -> None:
    for options in ({"max_step": 5}, {"callbacks": [MaxStepsStopping(5)]}):
        result = train(points, num_epochs=3, **options)
        assert (result.steps, result.status) == (5, "stopped")


def test_an_epoch_that_ends_with_the_last_step_is_audited(points: Any) -> None:
    result = train(points, num_epochs=3, max_step=11, validation_data=points)
    assert result.status == "stopped" and len(result.history["val_loss"]) == 1
    assert [e["records"] for e in events(result) if e["event"] == "epoch_audit"] == [333]


def test_early_stopping_looks_at_every_evaluation(points: Any) -> None:
    stopping = EarlyStopping("loss", patience=2, mode="max")  # the loss falls: no gain
    result = train(
        points, num_epochs=5, validation_data=points, evaluation_steps=3, callbacks=[stopping]
    )
    assert (result.steps, result.status) == (9, "stopped")


def test_early_stopping_says_what_there_is_when_its_metric_is_not(points: Any) -> None:
    with pytest.raises(UnknownName, match=r"watches 'auc', which .* Known: loss"):
        train(points, validation_data=points, callbacks=[EarlyStopping("auc")])


def test_keras_callbacks_see_what_fit_shows_them(points: Any) -> None:
    class Recorder(keras.callbacks.Callback):
        def __init__(self) -> None:
            super().__init__()
            self.calls: list[tuple[str, Any]] = []

        def on_train_begin(self, logs: Any = None) -> None:
            self.calls.append(("begin", None))

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.calls.append(("batch", batch))
            assert logs["loss"] > 0

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.calls.append(("epoch", sorted(logs)))

        def on_train_end(self, logs: Any = None) -> None:
            self.calls.append(("end", None))

    recorder = Recorder()
    stopping = keras.callbacks.EarlyStopping(monitor="val_loss", mode="max", patience=1)
    result = train(points, num_epochs=9, validation_data=points, callbacks=[recorder, stopping])
    assert result.status == "stopped" and result.steps == 22
    assert recorder.calls[0] == ("begin", None) and recorder.calls[-1] == ("end", None)
    assert [batch for what, batch in recorder.calls if what == "batch"] == list(range(22))
    assert ("epoch", ["loss", "val_loss"]) in recorder.calls


def test_learning_rate_follows_the_schedule_by_step(points: Any) -> None:
    rates: list[float] = []

    class Spy(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            rates.append(float(self.model.optimizer.learning_rate))

    schedule = LearningRateScheduler(lambda step: 0.1 / (step + 1))
    train(points, max_step=4, callbacks=[schedule, Spy()])
    assert rates == pytest.approx([0.1, 0.05, 0.1 / 3, 0.025])


def test_strings_and_ragged_features_train() -> None:
    words = np.array(["a b", "c", "a c b", "b"] * 20, dtype=object)
    labels = np.array([0, 1, 0, 1] * 20, dtype=np.float32)

    def dataset_fn(dataset: Any, mode: Any) -> Any:
        def parse(text: Any, label: Any) -> Any:
            ids = tf.strings.to_hash_bucket_fast(tf.strings.split(text), 16)
            return {"ids": ids, "text": text}, label

        return dataset.map(parse)

    class Bag(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = L.Embedding(16, 4)
            self.lookup = L.StringLookup(vocabulary=["a b", "c"], output_mode="one_hot")
            self.dense = L.Dense(1)

        def call(self, inputs: Any) -> Any:
            assert isinstance(inputs["ids"], tf.RaggedTensor)
            bag = tf.reduce_sum(self.embedding(inputs["ids"].to_tensor()), axis=1)
            text = tf.cast(self.lookup(inputs["text"]), tf.float32)
            return self.dense(tf.concat([bag, text], axis=1))

    result = train(
        (words, labels),
        Bag,
        loss=keras.losses.BinaryCrossentropy(from_logits=True),
        dataset_fn=dataset_fn,
        num_epochs=10,
        optimizer=keras.optimizers.Adam(0.1),
        validation_data=(words, labels),
    )
    assert result.history["loss"][-1] < 0.5 * result.history["loss"][0]


def test_records_may_be_filtered_out(points: Any) -> None:
    result = train(points, dataset_fn=lambda dataset, mode: dataset.filter(lambda x, y: y == 1))
    audit = next(e for e in events(result) if e["event"] == "epoch_audit")
    assert audit["records"] == 333 and audit["applied_once"]


def test_filtering_everything_out_is_an_error(points: Any) -> None:
    with pytest.raises(DataError, match="left none of the 333 records"):
        train(points, dataset_fn=lambda dataset, mode: dataset.filter(lambda x, y: y > 7))


def test_loss_that_is_not_finite_stops_and_says_at_which_step(points: Any) -> None:
    features, labels = points
    features[200] = np.nan
    with pytest.raises(
        NonFiniteLoss, match=r"nan at step 7, in the records \[192, 288\) of memory"
    ):
        smooth = keras.Sequential([keras.Input((4,)), L.Dense(3)])
        train((features, labels), smooth, shuffle_tasks=False, dataset_fn=None, output="run")
    told = [json.loads(line) for line in Path("run/events.jsonl").read_text().splitlines()]
    assert told[-1]["status"] == "failed" and "nan at step 7" in told[-1]["error"]
    assert not Path("run/model").exists()


def test_output_with_an_earlier_run_is_refused(points: Any) -> None:
    train(points, output="run")
    before = Path("run/model/model.keras").read_bytes()
    with pytest.raises(OutputExists, match=r"holds an earlier run.*--resume.*--overwrite"):
        train(points, output="run", seed=9)
    assert Path("run/model/model.keras").read_bytes() == before
    train(points, output="run", seed=9, overwrite=True)
    assert Path("run/model/model.keras").read_bytes() != before


def test_output_of_a_run_that_goes_on_is_refused_and_nothing_else_is_advised(points: Any) -> None:
    train(points, output="run")
    with Path("run/.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for more in ({}, {"overwrite": True}, {"resume": True}):
            with pytest.raises(OutputExists, match="Another run is writing to run right now") as e:
                train(points, output="run", **more)
            assert "--overwrite" not in str(e.value)
    assert Path("run/model/model.keras").exists()


def test_failed_run_that_saved_nothing_may_be_repeated(points: Any) -> None:
    def broken(labels: Any, output: Any) -> Any:
        if not tf.executing_eagerly():
            raise RuntimeError("a slip in the loss")
        return tf.reduce_mean(output)

    with pytest.raises(RuntimeError, match="a slip"):
        train(points, output="run", loss=broken)
    assert train(points, output="run").status == "completed"


def test_output_that_holds_other_files_is_refused(points: Any) -> None:
    Path("mine").mkdir()
    Path("mine/thesis.txt").write_text("precious")
    with pytest.raises(OutputExists, match=r"thesis\.txt"):
        train(points, output="mine", overwrite=True)
    assert [p.name for p in Path("mine").iterdir()] == ["thesis.txt"]


def test_two_runs_at_once_in_one_directory_are_refused(points: Any) -> None:
    from elasticdl.artifacts.run_directory import RunDirectory

    with (
        RunDirectory("run").held(resume=False, job={}),
        pytest.raises(OutputExists, match="Another run is writing"),
    ):
        train(points, output="run", overwrite=True)
    assert train(points, output="run", overwrite=True).status == "completed"


def test_resume_needs_a_run_with_a_checkpoint(points: Any) -> None:
    with pytest.raises(NotFound, match="no run to resume"):
        train(points, output="nothing", resume=True)
    train(points, output="run")
    with pytest.raises(NotFound, match="it saved no checkpoint"):
        train(points, output="run", resume=True)


def test_resume_keeps_what_the_run_was_started_with(points: Any) -> None:
    whole = train(points, num_epochs=2, output="whole", minibatch_size=20)
    train(points, num_epochs=2, output="cut", minibatch_size=20, max_step=5, checkpoint_steps=5)
    resumed = elasticdl.train(
        make_model,
        points,
        loss=LOSS,
        optimizer="adam",
        dataset_fn=shuffled,
        output="cut",
        resume=True,
    )
    assert_bit_identical(weights(whole), weights(resumed))
    for change in ({"seed": 6}, {"minibatch_size": 7}):
        with pytest.raises(InvalidValue, match=f"was started with {next(iter(change))}="):
            train(points, output="cut", resume=True, **{"minibatch_size": 20, **change})


def test_resume_obeys_a_flag_that_is_given_with_its_default(points: Any) -> None:
    train(points, num_epochs=3, output="cut", max_step=13, checkpoint_steps=13)
    with pytest.raises(InvalidValue, match="done 1 epochs and begun another: --num_epochs=1"):
        train(points, output="cut", resume=True, num_epochs=1)
    assert train(points, output="cut", resume=True, num_epochs=2).steps == 22


def test_checkpoint_of_another_model_says_what_differs(points: Any) -> None:
    train(points, output="run", checkpoint_steps=5)
    wide = keras.Sequential([keras.Input((4,)), L.Dense(9), L.Dense(3)])
    with pytest.raises(DataError, match=r"another model: .*(shape|missing)"):
        train(points, wide, checkpoint_dir_for_init="run/checkpoints")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.zeros((333, 2), int), r"labels:   int64 of shape \(32, 2\)"),
        (np.array(["x"] * 333, dtype=object), r"labels:   string of shape"),
        (np.full(333, 0.5, np.float32).astype(object), "labels|values"),
    ],
    ids=["shape", "type", "mixed"],
)
def test_labels_that_do_not_fit_are_named(points: Any, labels: Any, message: str) -> None:
    with pytest.raises((ContractError, DataError), match=message):
        train((points[0], labels), output="run")
    assert not Path("run").exists()


def test_unknown_option_names_the_nearest(points: Any) -> None:
    with pytest.raises(UnknownName, match="Did you mean 'num_epochs'"):
        train(points, num_epoch=2)
    with pytest.raises(InvalidValue, match="smallest that makes sense is 1"):
        train(points, num_epochs=0)


def test_debug_runs_the_users_code_eagerly(points: Any) -> None:
    eager: set[str] = set()

    def loss(labels: Any, output: Any) -> Any:
        if tf.executing_eagerly():
            eager.add(f"loss {float(output[0, 0]) > -1e9}")
        return keras.losses.sparse_categorical_crossentropy(labels, output, from_logits=True)

    def dataset_fn(dataset: Any, mode: Any) -> Any:
        def parse(x: Any, y: Any) -> Any:
            if tf.executing_eagerly():
                eager.add(f"map {x.numpy().shape}")
            return x, y

        return dataset.map(parse)

    result = train(points, loss=loss, dataset_fn=dataset_fn, debug=True, max_step=3)
    assert result.steps == 3
    assert eager == {"loss True", "map (4,)"}
    eager.clear()
    train(points, loss=loss, dataset_fn=dataset_fn, max_step=3)
    assert "map (4,)" not in eager


def test_trained_model_is_evaluated_to_the_same_number(points: Any) -> None:
    result = train(points, validation_data=points, output="run", num_epochs=2)
    again = elasticdl.evaluate(
        make_model, points, loss=LOSS, trained_model="run", minibatch_size=50
    )
    assert again.metrics == pytest.approx(result.metrics, rel=1e-5)


def test_trained_model_that_is_missing_or_torn_is_named(points: Any) -> None:
    with pytest.raises(NotFound, match="no trained model in nowhere"):
        elasticdl.evaluate(make_model, points, loss=LOSS, trained_model="nowhere")
    train(points, output="run")
    parameters = Path("run/model/params.safetensors")
    parameters.write_bytes(parameters.read_bytes()[:100])
    with pytest.raises(CorruptData, match="its checksum does not fit"):
        elasticdl.evaluate(make_model, points, loss=LOSS, trained_model="run")


def test_result_shows_itself(points: Any) -> None:
    result = train(points, validation_data=points)
    assert "validation loss" in str(result) and "<table>" in result._repr_html_()
    assert str(result.output) in str(result)


def test_a_model_in_memory_is_evaluated_with_its_own_weights(points: Any) -> None:
    model = make_model()
    model.compile(loss=LOSS)
    expected = model.evaluate(*points, verbose=0)
    assert elasticdl.evaluate(model, points, loss=LOSS).metrics["loss"] == pytest.approx(
        expected, rel=1e-5
    )
    with pytest.raises(InvalidValue, match="No weights were given"):
        elasticdl.evaluate(make_model, points, loss=LOSS)


@pytest.mark.parametrize("path", ["run", "run/model", "run/model/model.keras"])
def test_a_trained_model_is_found_by_any_of_its_paths(
    points: Any, whole: elasticdl.Result, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert whole.output is not None
    monkeypatch.chdir(whole.output.parent)
    assert elasticdl.evaluate(make_model, points, loss=LOSS, trained_model=path).metrics


def test_a_dataset_without_end_is_refused(points: Any) -> None:
    with pytest.raises(DataError, match=r"without end\. Remove `\.repeat\(\)`"):
        train(points, dataset_fn=lambda dataset, mode: dataset.repeat())


def test_records_that_are_repeated_are_counted_as_examples(points: Any) -> None:
    result = train(points, dataset_fn=lambda dataset, mode: dataset.repeat(2))
    audit = next(e for e in events(result) if e["event"] == "epoch_audit")
    assert (audit["records"], audit["examples"], audit["applied_once"]) == (333, 666, True)


def test_a_cache_in_a_file_is_refused(points: Any) -> None:
    with pytest.raises(ContractError, match="caches in a file"):
        train(points, dataset_fn=lambda dataset, mode: dataset.cache("cached"))
    assert train(points, dataset_fn=lambda dataset, mode: dataset.cache()).steps == 11


def test_the_failing_record_is_found(points: Any) -> None:
    texts = np.array([str(i) for i in range(1000)], dtype=object)
    texts[700] = "cat"

    def dataset_fn(dataset: Any, mode: Any) -> Any:
        return dataset.map(lambda text: (tf.strings.to_number(text)[None], 0))

    with pytest.raises(DataError, match=r"fails on record 700 of memory: .*cat"):
        train(texts, keras.Sequential([L.Dense(3)]), dataset_fn=dataset_fn, output="run")


def test_a_label_out_of_range_names_the_records(points: Any) -> None:
    features = np.zeros((600, 4), np.float32)
    labels = np.zeros(600, int)
    labels[500] = 12

    def loss(labels: Any, output: Any) -> Any:
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=output)

    with pytest.raises(RunError, match=r"records \[480, 576\) of memory: .*label value of 12"):
        train((features, labels), loss=loss, shuffle_tasks=False)


def test_features_that_do_not_fit_are_named(points: Any) -> None:
    with pytest.raises(
        ContractError, match=r"features: float32 of shape \(25, 10, 4\)(.|\n)*batches"
    ):
        train(points, dataset_fn=lambda dataset, mode: dataset.batch(10, drop_remainder=True))


def test_a_model_that_returns_nothing_is_refused(points: Any) -> None:
    class Forgetful(keras.Model):
        def call(self, inputs: Any) -> None:
            return None

    with pytest.raises(ContractError, match="returned nothing"):
        train(points, Forgetful)


def test_a_step_of_the_models_own_is_refused(points: Any) -> None:
    class Own(keras.Model):
        def train_step(self, data: Any) -> Any:
            return {}

    with pytest.raises(ContractError, match="Own has a train_step of its own"):
        train(points, Own)


def test_labels_that_would_broadcast_are_warned_of(points: Any) -> None:
    features, labels = points

    def loss(labels: Any, output: Any) -> Any:
        return tf.reduce_mean(tf.square(output - tf.cast(labels, tf.float32)))

    model = keras.Sequential([keras.Input((4,)), L.Dense(1)])
    result = train((features, labels), model, loss=loss, optimizer=keras.optimizers.SGD(1e-3))
    warning = next(e for e in events(result) if e["event"] == "warning")
    assert "labels have the shape (32,) and the outputs (32, 1)" in warning["message"]


def test_a_short_run_has_a_loss(points: Any) -> None:
    result = train(points, max_step=1)
    assert len(result.history["loss"]) == 1
    assert [e["step"] for e in events(result) if e["event"] == "step"] == [1]


def test_faults_in_validation_data_are_found_before_anything_is_written(points: Any) -> None:
    with pytest.raises(ContractError, match="features"):
        train(points, validation_data=(points[0][:, :3], points[1]), output="run")
    assert not Path("run").exists()


def test_a_model_that_keras_cannot_save_is_said_to_be_so(points: Any) -> None:
    class Unsaved(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense = L.Dense(3)

        def call(self, inputs: Any) -> Any:
            return self.dense(inputs)

        def get_config(self) -> Any:
            raise NotImplementedError("no config here")

    result = train(points, Unsaved, output="run")
    warning = next(e for e in events(result) if e["event"] == "warning")
    assert "cannot save the model as model.keras: no config here" in warning["message"]
    assert not Path("run/model/model.keras").exists()
    assert elasticdl.evaluate(Unsaved, points, loss=LOSS, trained_model="run").metrics["loss"] > 0


def test_parameters_that_are_lost_behind_a_finite_loss_are_told(points: Any) -> None:
    def blind() -> keras.Model:
        """What is no number becomes 0 on its way, but not in the gradient."""
        inputs = keras.Input((4,))
        return keras.Model(inputs, L.Dense(3)(keras.ops.nan_to_num(L.Dense(8)(inputs))))

    features, labels = points
    features[200] = np.nan
    result = train((features, labels), blind, dataset_fn=None)
    assert np.isfinite(result.history["loss"]).all()
    warning = next(e for e in events(result) if e["event"] == "warning")
    assert "of no use" in warning["message"] and "dense" in warning["message"]
