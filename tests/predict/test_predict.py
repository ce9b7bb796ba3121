"""Predictions equal Keras' own, whatever the records, the model file and the output are."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import elasticdl
from elasticdl.cli.main import main
from elasticdl.errors import ContractError, InvalidValue

from .conftest import MODELS, Trained
from .records import COUNT, FEATURES, INPUTS, read, values

OUTPUTS = ("out.parquet", "out.csv", "out.jsonl", "out.json", "out.recordio", "out.tfrecord", "out")


def expected(trained: Path) -> Any:
    """What Keras makes of the features with the weights that were trained."""
    from elasticdl.artifacts.stored_model import find_trained_model, load_parameters

    found = load_parameters(find_trained_model(str(trained)).fetch("params.safetensors"))
    kernels = sorted((n for n in found if n.endswith("kernel")), key=lambda n: -found[n].shape[1])
    made = FEATURES
    for name in kernels:
        made = made @ found[name] + found[name.replace("kernel", "bias")]
    return made


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("data", INPUTS)
def test_every_format_is_predicted_without_labels_into_every_other(
    home: Path, trained: Trained, data: str, output: str
) -> None:
    model = trained(MODELS[data], data)
    result = elasticdl.predict(
        trained_model=model,
        data=home / "without" / f"data.{data}",
        minibatch_size=16,
        num_minibatches_per_task=2,
        output=output,
    )
    assert (result.status, result.records) == ("completed", COUNT)
    np.testing.assert_allclose(values(read(Path(output))), expected(model), rtol=1e-4, atol=1e-5)
    assert not list(Path().glob("out.*.parts"))
    assert not list(Path().rglob(".*.tmp"))


@pytest.mark.parametrize(
    ("model_def", "labels"),
    [
        ("examples.custom_model", "without"),
        ("first", "without"),
        ("first", "with"),
        ("spec.Line", "without"),
        ("subclass.Net", "without"),
        ("ignores.custom_model", "with"),
    ],
)
def test_every_form_of_model_file_predicts_in_the_order_of_the_records(
    home: Path, trained: Trained, model_def: str, labels: str
) -> None:
    model = trained(model_def)
    data = home / labels / "data.recordio"
    found = elasticdl.predict(trained_model=model, data=data, minibatch_size=7).predictions
    np.testing.assert_allclose(found, expected(model), rtol=1e-4, atol=1e-5)


def test_the_trained_model_alone_is_enough(home: Path, trained: Trained, tmp_path: Path) -> None:
    shutil.copytree(trained("examples.custom_model") / "model", tmp_path / "alone")
    data = home / "without/data.recordio"
    code = main(["predict", "--trained_model=alone", f"--data={data}", "--output=out.csv"])
    assert code == 0
    np.testing.assert_allclose(
        values(read(Path("out.csv"))), expected(trained("examples.custom_model")), rtol=1e-4
    )


def test_the_debugger_sees_the_same(home: Path, trained: Trained) -> None:
    model = trained("examples.custom_model")
    data = home / "without/data.recordio"
    found = elasticdl.predict(trained_model=model, data=data, debug=True).predictions
    np.testing.assert_allclose(found, expected(model), rtol=1e-4, atol=1e-5)


def test_a_shuffle_is_refused_where_it_cannot_be_undone(home: Path, trained: Trained) -> None:
    model, data = trained("ignores.custom_model"), home / "with/data.recordio"
    with pytest.raises(ContractError, match="shuffles in prediction mode"):
        elasticdl.predict(trained_model=model, data=data, debug=True)


def test_records_of_several_lengths_are_predicted(home: Path) -> None:
    def dataset_fn(dataset: Any, mode: Any) -> Any:
        return dataset.map(lambda row: tf.range(tf.cast(row[0], tf.int64) + 1))

    model = Whatever(lambda x: tf.cast(tf.reduce_sum(x, 1, keepdims=True), tf.float32))
    options = {"dataset_fn": dataset_fn, "minibatch_size": 3}
    found = elasticdl.predict(model, X, **options).predictions
    assert found.ravel().tolist() == [n * (n + 1) / 2 for n in range(0, 20, 2)]


def test_columns_are_found_by_name_in_any_order(home: Path, trained: Trained) -> None:
    from .records import write_csv

    model = trained("rows.custom_model", "csv")
    write_csv(Path("other.csv"), True, "ycab")
    found = elasticdl.predict(trained_model=model, data="other.csv").predictions
    np.testing.assert_allclose(found, expected(model), rtol=1e-4, atol=1e-5)


def test_an_object_store_takes_predictions(home: Path, trained: Trained) -> None:
    from upath import UPath

    model = trained("examples.custom_model")
    for output in ("memory://predict/out.csv", "memory://predict/parts/"):
        result = elasticdl.predict(
            trained_model=model,
            data=home / "without/data.recordio",
            minibatch_size=50,
            num_minibatches_per_task=1,
            output=output,
        )
        assert result.status == "completed"
    rows = UPath("memory://predict/out.csv").read_text().splitlines()
    assert (rows[0], len(rows)) == ("prediction", COUNT + 1)
    names = sorted(path.name for path in UPath("memory://predict").iterdir())
    assert names == ["out.csv", "parts"]
    parts = sorted(path.name for path in UPath("memory://predict/parts").iterdir())
    sums = [f".part-0000{i}.json" for i in range(3)]
    assert parts == [*sums, ".prediction.json", *(f"part-0000{i}.parquet" for i in range(3))]


# --- What models put out ---

X = np.arange(20, dtype=np.float32).reshape(10, 2)


def functional(outputs: Any) -> keras.Model:
    inputs = keras.Input((2,))
    return keras.Model(inputs, outputs(inputs))


class Whatever(keras.Model):
    """A model that puts out what a function makes of its inputs."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self._function = function

    def call(self, inputs: Any, training: bool = False) -> Any:
        return self._function(inputs)


def predict(model: keras.Model, **options: Any) -> Any:
    defaults = {"minibatch_size": 4, "num_minibatches_per_task": 2}
    return elasticdl.predict(model, X, **(defaults | options)).predictions


def test_a_model_in_memory_is_predicted_like_keras_does() -> None:
    model = functional(keras.layers.Dense(3))
    np.testing.assert_allclose(predict(model), model.predict(X, verbose=0), rtol=1e-6)


def test_a_model_that_has_learned_nothing_is_refused() -> None:
    with pytest.raises(InvalidValue, match="has no weights yet"):
        elasticdl.predict(lambda: functional(keras.layers.Dense(3)), X)


def test_dropout_and_batch_normalization_are_in_inference_mode() -> None:
    layers = [keras.layers.BatchNormalization(), keras.layers.Dropout(0.9)]
    model = keras.Sequential([keras.Input((2,)), *layers])
    np.testing.assert_allclose(predict(model), model.predict(X, verbose=0), rtol=1e-6)


def test_a_dict_of_outputs_names_the_columns() -> None:
    model = Whatever(lambda x: {"total": tf.reduce_sum(x, 1), "pair": x, "word": tf.as_string(x)})
    found = predict(model)
    assert sorted(found) == ["pair", "total", "word"]
    np.testing.assert_array_equal(found["pair"], X)
    assert found["word"].dtype == object
    predict(model, output="out.csv")
    assert list(read(Path("out.csv"))[1]) == ["pair_0", "pair_1", "total", "word_0", "word_1"]
    predict(model, output="out.parquet")
    row = read(Path("out.parquet"))[1]
    assert (row["pair"], row["total"], len(row["word"])) == ([2.0, 3.0], 5.0, 2)


@pytest.mark.parametrize("named", [True, False])
def test_several_outputs_have_the_names_of_their_author_or_numbers(named: bool) -> None:
    names = ["mean", "spread"] if named else [None, None]
    model = functional(lambda x: [keras.layers.Dense(1, name=name)(x) for name in names])
    found = predict(model)
    assert [array.shape for array in found] == [(10, 1), (10, 1)]
    predict(model, output="out.jsonl")
    keys = ["mean", "spread"] if named else ["prediction_0", "prediction_1"]
    assert list(read(Path("out.jsonl"))[0]) == keys


@pytest.mark.parametrize("output", OUTPUTS)
def test_outputs_of_more_dimensions_keep_their_shape(output: str) -> None:
    model = Whatever(lambda x: tf.stack([x, x + 1, x + 2], 1))
    predict(model, output=output)
    row = read(Path(output))[2]
    shown = [[4.0, 5.0], [5.0, 6.0], [6.0, 7.0]]
    if output.endswith(("recordio", "tfrecord")):
        assert (row["prediction"], row["prediction_shape"]) == ([4, 5, 5, 6, 6, 7], [3, 2])
    elif output.endswith("csv"):
        assert row["prediction"] == "[[4, 5], [5, 6], [6, 7]]"
    else:
        assert row["prediction"] == shown


@pytest.mark.parametrize("output", OUTPUTS)
def test_rows_of_several_lengths_are_written(output: str) -> None:
    model = Whatever(lambda x: tf.RaggedTensor.from_row_lengths(
        tf.range(tf.cast(tf.reduce_sum(x[:, 0]), tf.int64)), tf.cast(x[:, 0], tf.int64)
    ))  # fmt: skip
    assert [len(row) for row in predict(model)] == list(range(0, 20, 2))
    predict(model, output=output)
    rows = [row.get("prediction") or [] for row in read(Path(output))]
    if output.endswith("csv"):
        assert rows[:2] == ["[]", "[0, 1]"]
    else:
        assert [len(row) for row in rows] == list(range(0, 20, 2))


def test_half_precision_booleans_and_whole_numbers_keep_their_meaning() -> None:
    model = Whatever(
        lambda x: {"half": tf.cast(x, tf.bfloat16), "flag": x > 3, "whole": tf.cast(x, tf.int32)}
    )
    found = predict(model)
    assert [found[k].dtype.name for k in ("half", "flag", "whole")] == ["float32", "bool", "int32"]
    for output in OUTPUTS:
        predict(model, output=output)
        row = read(Path(output))[1]
        assert "csv" in output or (row["flag"], row["whole"]) == ([False, False], [2, 3])


def test_what_is_not_finite_is_null_in_json() -> None:
    predict(Whatever(lambda x: x / 0.0), output="out.jsonl")
    assert read(Path("out.jsonl"))[0]["prediction"] == [None, None]


def test_a_model_that_puts_out_one_number_a_minibatch_is_refused() -> None:
    with pytest.raises(
        ContractError, match=r"'prediction' has the shape \(\) for a minibatch of 4"
    ):
        predict(Whatever(tf.reduce_sum))


# --- The user's processor ---


class Processor:
    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []
        self.rows: list[Any] = []

    def process(self, predictions: Any, worker_id: int) -> None:
        self.seen.append((len(predictions), worker_id))
        self.rows.append(predictions.numpy())


def test_the_processor_is_called_once_a_minibatch_with_the_workers_id() -> None:
    model, processor = functional(keras.layers.Dense(3)), Processor()
    result = elasticdl.predict(
        model, X, minibatch_size=4, prediction_outputs_processor=processor, output="out.csv"
    )
    assert processor.seen == [(4, 0), (4, 0), (2, 0)]
    np.testing.assert_allclose(np.concatenate(processor.rows), model.predict(X, verbose=0))
    assert result.predictions is None
    assert len(read(Path("out.csv"))) == 10


def test_a_processor_of_the_model_file_is_enough(
    home: Path, trained: Trained, capsys: pytest.CaptureFixture[str]
) -> None:
    zoo = home / "zoo_with_processor"
    zoo.mkdir()
    text = (home / "zoo/examples.py").read_text()
    (zoo / "examples.py").write_text(
        text + "\nclass PredictionOutputsProcessor:\n"
        "    def process(self, predictions, worker_id):\n"
        "        print('got', predictions.shape, worker_id)\n"
    )
    code = main([
        "predict", f"--model_zoo={zoo}", "--model_def=examples.custom_model", "--minibatch_size=100",
        f"--trained_model={trained('examples.custom_model')}", f"--data={home}/without/data.recordio",
    ])  # fmt: skip
    assert code == 0
    assert "got (100, 1) 0\ngot (50, 1) 0\n" in capsys.readouterr().out
