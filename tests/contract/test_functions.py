"""Model files of functions: every shape that their functions come in."""

from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from elasticdl.contract.dataset import PlainBatches
from elasticdl.contract.load import load_spec
from elasticdl.contract.mode import Mode
from elasticdl.contract.spec import Spec
from elasticdl.errors import ContractError, InvalidValue, UnknownName

from .conftest import WriteZoo

BASE = """
import keras
import tensorflow as tf
from elasticdl.python.common.constants import Mode
"""
MODEL = "def custom_model(): return keras.Sequential([keras.layers.Dense(1)])\n"
LOSS = "def loss(labels, output): return tf.reduce_mean(tf.square(output - labels))\n"
OPTIMIZER = "def optimizer(lr=0.1): return keras.optimizers.SGD(lr)\n"
X, Y = [[1.0], [2.0], [3.0]], [[2.0], [4.0], [6.0]]


@pytest.fixture
def load(write_zoo: WriteZoo):
    def loaded(*parts: str, name: str = "m", **options: object) -> Spec:
        zoo = write_zoo({"m.py": BASE + "\n".join(parts)})
        return load_spec(name, model_zoo=zoo, **options)

    return loaded


def pairs() -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices((X, Y))


def numbers(count: int = 4) -> tf.data.Dataset:
    return tf.data.Dataset.range(count)


# --- the model ---


@pytest.mark.parametrize(
    ("definition", "name"),
    [
        ("def custom_model(): return keras.Sequential([keras.layers.Dense(1)])", "m"),
        ("model = keras.Sequential([keras.layers.Dense(1)])", "m"),
        ("model = keras.Sequential([keras.layers.Dense(1)])", "m.model"),
        ("def model(): return keras.Sequential([keras.layers.Dense(1)])", "m.model"),
        ("def net(): return keras.Sequential([keras.layers.Dense(1)])", "m.net"),
        ("class model(keras.Sequential): pass", "m"),
        ("class Net(keras.Sequential): pass", "m.Net"),
    ],
)
def test_a_model_is_an_instance_a_factory_or_a_class(load, definition: str, name: str) -> None:
    spec = load(definition, LOSS, OPTIMIZER, name=name)
    assert isinstance(spec.build_model(), keras.Model)
    assert spec.files == ["m.py"]


def test_a_model_made_at_import_is_fresh_for_each_load(load) -> None:
    one, two = (
        load("model = keras.Sequential([keras.layers.Dense(1)])", LOSS, OPTIMIZER) for _ in "ab"
    )
    assert one.build_model() is one.build_model()
    assert one.build_model() is not two.build_model()


def test_params_reach_the_factory(load) -> None:
    definition = "def custom_model(units, name='n'): return keras.Sequential([keras.layers.Dense(units)], name=name)"
    spec = load(definition, LOSS, OPTIMIZER, model_params={"units": 7})
    assert spec.build_model()(tf.ones([2, 3])).shape == (2, 7)


def test_unknown_and_missing_params_are_told(load) -> None:
    definition = "def custom_model(hidden_units): pass"
    with pytest.raises(
        InvalidValue, match=r"no parameter 'hidden_unit'. Did you mean 'hidden_units'"
    ):
        load(definition, LOSS, OPTIMIZER, model_params={"hidden_unit": 1})
    with pytest.raises(InvalidValue, match="needs the parameter 'hidden_units'"):
        load(definition, LOSS, OPTIMIZER)


def test_params_for_an_instance_are_refused(load) -> None:
    with pytest.raises(
        InvalidValue, match=r"instance, which takes no model_params.*custom_model\(units\)"
    ):
        load("model = keras.Sequential([])", LOSS, OPTIMIZER, model_params={"units": 1})


def test_a_factory_that_returns_nothing_is_told(load) -> None:
    spec = load("def custom_model(): pass", LOSS, OPTIMIZER)
    with pytest.raises(ContractError, match=r"m.py returned nothing \(None\)"):
        spec.build_model()


# --- the dataset ---


@pytest.mark.parametrize(
    "definition",
    [
        "def dataset_fn(dataset, mode): return dataset.map(lambda x: (x, mode == Mode.TRAINING))",
        "def feed(dataset, mode, metadata): return dataset.map(lambda x: (x, mode == metadata))",
        "def feed(dataset, mode, _metadata): return dataset.map(lambda x: (x, mode == _metadata))",
        "def dataset_fn(dataset, training): return dataset.map(lambda x: (x, True if training else False))",
        "def dataset_fn(dataset, training): return dataset.map(lambda x: (x, training == Mode.TRAINING))",
        "def dataset_fn(a, b): return a.map(lambda x: (x, b == Mode.TRAINING))",
        "def dataset_fn(ds, size=9): return ds.map(lambda x: (x, size == 9))",
        "def dataset_fn(mode, dataset): return dataset.map(lambda x: (x, mode == Mode.TRAINING))",
        "def input_fn(dataset, mode): return dataset.map(lambda x: (x, mode == Mode.TRAINING))",
        "def dataset_fn(dataset): return dataset.map(lambda x: (x, True))",
        "def dataset_fn(*args): return args[0].map(lambda x: (x, args[1] == Mode.TRAINING))",
    ],
)
def test_a_dataset_function_is_bound_by_its_parameters(load, definition: str) -> None:
    spec = load(MODEL, LOSS, OPTIMIZER, definition)
    batches = list(spec.batches(numbers(5), Mode.TRAINING, "training", 2))
    assert [x.numpy().tolist() for x, _ in batches] == [[0, 1], [2, 3], [4]]
    assert all(y.numpy().all() for _, y in batches)


@pytest.mark.parametrize("mode", [Mode.EVALUATION, Mode.PREDICTION])
def test_a_parameter_called_training_is_false_in_other_modes(load, mode: Mode) -> None:
    spec = load(
        MODEL,
        LOSS,
        OPTIMIZER,
        "def dataset_fn(d, training): return d.map(lambda x: (x + (1 if training else 0), x))",
    )
    element = next(iter(spec.batches(numbers(), mode, None, 4)))
    features = element if mode is Mode.PREDICTION else element[0]
    assert features.numpy().tolist() == [0, 1, 2, 3]


def test_batches_are_made_inside_a_graph(load) -> None:
    spec = load(
        MODEL, LOSS, OPTIMIZER, "def feed(dataset, mode): return dataset.map(lambda x: (x, x))"
    )

    @tf.function
    def total(count: tf.Tensor) -> tf.Tensor:
        result = tf.constant(0, tf.int64)
        for x, _ in spec.batches(tf.data.Dataset.range(count), Mode.TRAINING, None, 2):
            result += tf.reduce_sum(x)
        return result

    assert int(total(tf.constant(5, tf.int64))) == 10


def test_prediction_yields_features_alone(load) -> None:
    spec = load(
        MODEL, LOSS, OPTIMIZER, "def feed(dataset, mode): return dataset.map(lambda x: (x, x))"
    )
    (features,) = spec.batches(numbers(2), Mode.PREDICTION, None, 2)
    assert features.numpy().tolist() == [0, 1]


@pytest.mark.parametrize(("returned", "shown"), [("None", "nothing"), ("[1]", "list")])
def test_a_dataset_function_that_returns_no_dataset_is_told(
    load, returned: str, shown: str
) -> None:
    spec = load(MODEL, LOSS, OPTIMIZER, f"def feed(dataset, mode): return {returned}")
    with pytest.raises(ContractError, match=f"returned {shown}.* in training mode"):
        spec.batches(numbers(), Mode.TRAINING, None, 2)


def test_records_that_are_examples_need_no_dataset_function(load) -> None:
    spec = load(MODEL, LOSS, OPTIMIZER)
    assert [len(x) for x, _ in spec.batches(pairs(), Mode.TRAINING, None, 2)] == [2, 1]
    assert [len(x) for x in spec.batches(pairs(), Mode.PREDICTION, None, 2)] == [2, 1]


def test_records_without_labels_need_a_dataset_function(load) -> None:
    with pytest.raises(ContractError, match=r"no dataset_fn.*dataset_fn\(dataset, mode\)"):
        load(MODEL, LOSS, OPTIMIZER).batches(numbers(), Mode.TRAINING, None, 2)


def test_a_users_error_in_a_dataset_function_is_theirs(load) -> None:
    spec = load(MODEL, LOSS, OPTIMIZER, "def feed(dataset, mode): return 1 / 0")
    with pytest.raises(ZeroDivisionError) as raised:
        spec.batches(numbers(), Mode.TRAINING, None, 2)
    assert Path(raised.traceback[-1].path).name == "m.py"


# --- the form of features ---


def test_the_model_that_was_looked_at_is_the_one_that_is_built(load) -> None:
    spec = load(
        "made = []\ndef custom_model():\n    made.append(1)\n    return keras.Sequential(name=f'n{len(made)}')",
        LOSS,
        OPTIMIZER,
        "def feed(dataset, mode): return dataset.map(lambda x, y: ({'x': x}, y))",
    )
    spec.batches(pairs(), Mode.TRAINING, None, 3)
    assert [spec.build_model().name for _ in range(2)] == ["n1", "n2"]


# --- the loss ---

OUT, LAB = tf.constant([[1.0], [3.0]]), tf.constant([[0.0], [1.0]])


@pytest.mark.parametrize(
    "signature",
    [
        "labels, output", "output, labels", "outputs, labels", "labels, predictions",
        "predictions, labels", "y_true, y_pred", "y_pred, y_true", "labels, logits", "*, output, labels",
        "output, labels, extra=1", "labels, x", "x, labels", "output, x",
    ],
)  # fmt: skip
def test_a_loss_is_bound_by_the_names_of_its_parameters(load, signature: str) -> None:
    names = [n.strip() for n in signature.split(",")]
    labels = next((n for n in names if n in ("labels", "y_true")), "x")
    outputs = next(n for n in names if n not in (labels, "*", "extra=1"))
    text = f"def loss({signature}): return tf.reduce_sum({outputs} - 10 * {labels})"
    spec = load(MODEL, OPTIMIZER, text)
    assert float(spec.loss(LAB, OUT, None)) == -6.0
    assert float(tf.function(spec.loss)(LAB, OUT, None)) == -6.0


def test_a_loss_of_unknown_names_gets_labels_first(load) -> None:
    spec = load(MODEL, OPTIMIZER, "def loss(a, b): return tf.reduce_sum(b - 10 * a)")
    assert float(spec.loss(LAB, OUT, None)) == -6.0


def test_a_loss_an_example_is_averaged_and_weighted_as_keras_does(load) -> None:
    spec = load(
        MODEL, OPTIMIZER, "def loss(labels, output): return tf.square(output - labels)[:, 0]"
    )
    weights = tf.constant([0.5, 2.0])
    expected = keras.losses.MeanSquaredError()
    assert float(spec.loss(LAB, OUT, None)) == float(expected(LAB, OUT))
    assert float(spec.loss(LAB, OUT, weights)) == float(expected(LAB, OUT, weights))


def test_a_loss_that_takes_weights_gets_them(load) -> None:
    spec = load(
        MODEL, OPTIMIZER, "def loss(labels, output, sample_weights=None): return sample_weights"
    )
    assert float(spec.loss(LAB, OUT, tf.constant(3.0))) == 3.0


def test_weights_for_a_loss_of_one_number_are_refused(load) -> None:
    spec = load(MODEL, OPTIMIZER, LOSS)
    with pytest.raises(ContractError, match=r"one number for a batch.*sample_weight"):
        spec.loss(LAB, OUT, tf.constant([1.0, 2.0]))


@pytest.mark.parametrize(
    "text", ["loss = 'mse'", "loss = {'a': 'mse'}", "def loss(): return 'mse'"]
)
def test_a_loss_that_keras_knows_is_passed_through(load, text: str) -> None:
    assert load(MODEL, OPTIMIZER, text).loss in ("mse", {"a": "mse"})


@pytest.mark.parametrize("text", ["MeanSquaredError()", "MeanSquaredError"])
def test_a_keras_loss_is_passed_through(load, text: str) -> None:
    spec = load(MODEL, OPTIMIZER, f"loss = keras.losses.{text}")
    assert isinstance(spec.loss, keras.losses.MeanSquaredError)


def test_a_loss_that_returns_nothing_is_told(load) -> None:
    spec = load(MODEL, OPTIMIZER, "def loss(labels, output): pass")
    with pytest.raises(
        ContractError, match=r"loss\(labels, output\) \(.*m.py, line .*returned nothing"
    ):
        spec.loss(LAB, OUT, None)


def test_a_loss_with_a_parameter_too_many_is_told(load) -> None:
    with pytest.raises(ContractError, match="parameter 'c' that nothing is known for"):
        load(MODEL, OPTIMIZER, "def loss(a, b, c): pass")


def test_a_misspelt_keras_loss_is_told(load) -> None:
    with pytest.raises(
        UnknownName, match=r"no loss 'mean_squared_eror'. Did you mean 'mean_squared_error'"
    ):
        load(MODEL, OPTIMIZER, "loss = 'mean_squared_eror'")


# --- the optimizer ---


@pytest.mark.parametrize(
    ("text", "params", "rate"),
    [
        (OPTIMIZER, {}, 0.1),
        (OPTIMIZER, {"lr": 0.5}, 0.5),
        (OPTIMIZER, {"learning_rate": 0.5}, 0.5),
        (
            "def optimizer(learning_rate): return keras.optimizers.SGD(learning_rate)",
            {"lr": 0.5},
            0.5,
        ),
        ("optimizer = 'adam'", {"learning_rate": 0.5}, 0.5),
        ("optimizer = keras.optimizers.SGD(0.25)", {}, 0.25),
        ("optimizer = keras.optimizers.SGD", {"lr": 0.5}, 0.5),
        ("def optimizer(): return 'sgd'", {}, 0.01),
    ],
)
def test_an_optimizer_is_a_function_an_object_or_a_name(
    load, text: str, params: dict[str, float], rate: float
) -> None:
    made = load(MODEL, LOSS, text, model_params=params).make_optimizer()
    assert float(made.learning_rate) == pytest.approx(rate)


def test_a_learning_rate_goes_to_both_that_take_it(load) -> None:
    model = "def custom_model(lr): return keras.Sequential(name=f'rate{lr}')"
    spec = load(model, LOSS, OPTIMIZER, model_params={"lr": 3})
    assert spec.build_model().name == "rate3"
    assert float(spec.make_optimizer().learning_rate) == 3


def test_a_learning_rate_that_nobody_takes_is_refused(load) -> None:
    with pytest.raises(InvalidValue, match="takes no parameter 'lr'"):
        load(MODEL, LOSS, "optimizer = keras.optimizers.SGD()", model_params={"lr": 3})


def test_a_used_optimizer_is_not_handed_out_again(load) -> None:
    spec = load(MODEL, LOSS, "optimizer = keras.optimizers.SGD(0.25)")
    first = spec.make_optimizer()
    first.build([keras.Variable(1.0)])
    second = spec.make_optimizer()
    assert second is not first
    assert float(second.learning_rate) == 0.25


def test_an_optimizer_of_the_wrong_kind_is_told(load) -> None:
    spec = load(MODEL, LOSS, "def optimizer(): return 3")
    with pytest.raises(ContractError, match=r"returned 3 \(int\). Return a Keras optimizer"):
        spec.make_optimizer()


# --- metrics ---


@pytest.mark.parametrize("signature", ["predictions, labels", "labels, predictions"])
def test_metrics_of_predictions_and_labels_are_values(load, signature: str) -> None:
    text = f"def eval_metrics_fn({signature}): return {{'d': tf.reduce_sum(predictions - labels.flatten())}}"
    spec = load(MODEL, LOSS, OPTIMIZER, text)
    assert spec.metric_values is not None
    labels, outputs = tf.constant([[1]]), tf.constant([3.0])
    assert float(spec.metric_values(labels, outputs)["d"]) == 2.0
    assert float(tf.function(spec.metric_values)(labels, outputs)["d"]) == 2.0
    assert not spec.metrics()


def test_metrics_without_arguments_are_definitions(load) -> None:
    spec = load(
        MODEL,
        LOSS,
        OPTIMIZER,
        """
def eval_metrics_fn():
    return {
        'auc': keras.metrics.AUC(),
        'named': 'mae',
        'accuracy': 'accuracy',
        'fn': lambda labels, predictions: predictions - 10 * labels,
        'turned': lambda predictions, labels: predictions - 10 * labels,
    }
""",
    )
    found = {m.name: m.metric for m in spec.metrics()}
    assert spec.metric_values is None
    assert isinstance(found["auc"], keras.metrics.AUC)
    assert isinstance(found["named"], keras.metrics.MeanAbsoluteError)
    assert found["fn"](1.0, 2.0) == found["turned"](1.0, 2.0) == -8.0
    assert spec.metrics()[0].metric is not spec.metrics()[0].metric


def test_metrics_nested_by_output_carry_its_name(load) -> None:
    spec = load(MODEL, LOSS, OPTIMIZER, "def eval_metrics_fn(): return {'head': {'mae': 'mae'}}")
    (metric,) = spec.metrics()
    assert (metric.name, metric.output) == ("head_mae", "head")


@pytest.mark.parametrize(
    ("labels", "predictions", "expected"),
    [
        ([[1], [0]], [[0.9], [0.8]], [1, 0]),
        ([1, 0], [[0.9], [0.8]], [1, 0]),
        ([[0, 1], [1, 0]], [[0.1, 0.9], [0.2, 0.8]], [1, 0]),
        ([[1], [0]], [[0.1, 0.9], [0.2, 0.8]], [1, 0]),
        ([1, 0], [[0.1, 0.9], [0.2, 0.8]], [1, 0]),
    ],
)
def test_accuracy_is_that_of_the_shapes(
    load, labels: list, predictions: list, expected: list
) -> None:
    spec = load(MODEL, LOSS, OPTIMIZER, "def eval_metrics_fn(): return ['accuracy']")
    (metric,) = spec.metrics()
    found = metric.metric(tf.constant(labels), tf.constant(predictions))
    assert np.ravel(found).tolist() == expected


def test_a_metric_of_the_wrong_kind_is_told(load) -> None:
    spec = load(MODEL, LOSS, OPTIMIZER, "def eval_metrics_fn(): return {'a': 3}")
    with pytest.raises(ContractError, match=r"metric 'a' is 3 \(int\)"):
        spec.metrics()


# --- the rest ---


def test_the_optional_parts_are_found(load) -> None:
    spec = load(
        MODEL,
        LOSS,
        OPTIMIZER,
        """
def callbacks(): return [keras.callbacks.History()]
def custom_data_reader(data_origin, records_per_task=None, **kwargs): return data_origin
class PredictionOutputsProcessor:
    def process(self, predictions, worker_id): return worker_id
def prepare_data_for_a_single_file(filename): return filename
""",
    )
    assert isinstance(spec.callbacks()[0], keras.callbacks.History)
    assert spec.data_reader("there") == "there"
    assert spec.prediction_processor().process(None, 4) == 4
    assert spec.prepare_data("f") == "f"


def test_a_callback_of_the_wrong_kind_is_told(load) -> None:
    for wrong in ("[3]", "3"):
        with pytest.raises(ContractError, match=r"gave 3 .* tf.keras.callbacks.Callback"):
            load(MODEL, LOSS, OPTIMIZER, f"def callbacks(): return {wrong}").callbacks()


@pytest.mark.parametrize(
    "name",
    [
        "callbacks",
        "dataset_fn",
        "custom_model",
        "eval_metrics_fn",
        "custom_data_reader",
        "PredictionOutputsProcessor",
        "prepare_data_for_a_single_file",
        "feature_columns",
    ],
)
def test_a_module_is_no_part_of_a_model_file(load, name: str) -> None:
    spec = load(
        "model = keras.Sequential([])", LOSS, OPTIMIZER, f"from keras import callbacks as {name}"
    )
    assert isinstance(spec.build_model(), keras.Model)
    assert spec.callbacks() == []
    assert spec.metrics() == ()
    assert (spec.data_reader, spec.prediction_processor, spec.prepare_data) == (None,) * 3
    assert isinstance(spec.batches, PlainBatches)


def test_everything_of_elasticdl_may_be_imported_into_a_model_file(load) -> None:
    assert load(MODEL, LOSS, OPTIMIZER, "from elasticdl import *").callbacks() == []


def test_a_processor_without_process_is_told(load) -> None:
    spec = load(MODEL, LOSS, OPTIMIZER, "class PredictionOutputsProcessor: pass")
    with pytest.raises(ContractError, match=r"no method process\(predictions, worker_id\)"):
        spec.prediction_processor()


def test_a_function_of_settings_alone_makes_the_part(load) -> None:
    spec = load(
        MODEL,
        OPTIMIZER,
        "def loss(from_logits=True): return keras.losses.BinaryCrossentropy(from_logits)",
        "def eval_metrics_fn(threshold=0.5): return {'a': keras.metrics.BinaryAccuracy('a', None, threshold)}",
    )
    assert isinstance(spec.loss, keras.losses.BinaryCrossentropy)
    assert [m.name for m in spec.metrics()] == ["a"]
