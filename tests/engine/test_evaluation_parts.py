"""An evaluation in parts, by several processes, gives the numbers of one that one process makes."""

from __future__ import annotations

import contextlib
import pickle
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from elasticdl.contract.mode import Mode
from elasticdl.engine import metrics
from elasticdl.engine.evaluator import Evaluation, Evaluator
from elasticdl.engine.parts import Part, plain, tensors_of
from elasticdl.engine.state import TrainingModel
from elasticdl.errors import AuditFailure, DataError
from elasticdl.job.config import JobConfig
from elasticdl.runtime import assembly

L, M = keras.layers, keras.metrics
OPTIONS = {"minibatch_size": 8, "num_minibatches_per_task": 2, "seed": 1}
Metrics = Callable[..., Any] | None
BUILT_IN = [
    name
    for name, made in vars(M).items()
    if isinstance(made, type) and issubclass(made, M.Metric) and made is not M.Metric
]


def classifier() -> keras.Model:
    keras.utils.set_random_seed(3)
    return keras.Sequential([keras.Input((4,)), L.Dense(3, activation="softmax")])


def regressor() -> keras.Model:
    keras.utils.set_random_seed(3)
    return keras.Sequential([keras.Input((4,)), L.Dense(1, kernel_regularizer="l2")])


def with_two_outputs() -> keras.Model:
    keras.utils.set_random_seed(3)
    x = keras.Input((4,))
    kind = L.Dense(3, activation="softmax")(x)
    return keras.Model(x, {"kind": kind, "size": L.Dense(1)(x)})


@contextlib.contextmanager
def evaluator(
    model: keras.Model, data: Any, fn: Metrics = None, *, compiled: bool = False, **objects: Any
) -> Iterator[Evaluator]:
    """A worker's evaluator, of its own data and its own metrics."""
    config = JobConfig.parse("evaluate", OPTIONS)
    given = {"model": model, "validation_data": data, "eval_metrics_fn": fn, **objects}
    given = {name: value for name, value in given.items() if value is not None}
    spec = assembly.load(config, given)
    if compiled:
        spec = replace(spec, compiled=True, build_model=lambda: model, metrics=lambda: ())
    source = assembly.open_data(config, spec, "validation_data", given)
    assert source is not None
    with assembly.make_pipeline(config, spec, source, Mode.EVALUATION) as pipeline:
        element = assembly.first_minibatch(config, pipeline, source)
        training = TrainingModel(spec, element, trains=False)
        yield Evaluator(training, pipeline, lambda: assembly.make_ledger(config, source))


def evaluated(one: Evaluator) -> Evaluation:
    evaluation = one.evaluate()
    assert evaluation is not None
    return evaluation


def random_parts(one: Evaluator, seed: int) -> list[Part]:
    """Of a random split in a random order, some parts empty, as they come out of other processes."""
    rng = random.Random(seed)
    leases = one.leases()
    rng.shuffle(leases)
    ends = sorted(rng.randrange(len(leases) + 1) for _ in range(4))
    cuts = zip([0, *ends], [*ends, len(leases)], strict=True)
    return [travelled(one.part(leases[i:j])) for i, j in cuts]


def travelled(value: Any) -> Any:
    """To another process."""
    return pickle.loads(pickle.dumps(value))  # noqa: S301


def assert_splits_make_no_difference(one: Evaluator) -> Evaluation:
    whole = evaluated(one)
    splits = [random_parts(one, seed) for seed in range(3)]
    splits += [[one.part([lease]) for lease in one.leases()], [one.part(one.leases())]]
    for parts in splits:
        merged = one.merge(parts)
        assert merged.examples == whole.examples
        assert merged.metrics["loss"] == whole.metrics["loss"]
        assert merged.metrics == pytest.approx(whole.metrics, rel=1e-6, abs=1e-6)
    assert evaluated(one) == whole
    return whole


SPARSE_LOSS = keras.losses.SparseCategoricalCrossentropy()
"""Of labels (n,), with outputs (n, 3)."""


def of_one_hot(metric: keras.metrics.Metric) -> Any:
    class OneHot(type(metric)):  # type: ignore[misc]
        is_additive = True

        def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
            super().update_state(tf.one_hot(y_true, 3), y_pred, sample_weight)

    return OneHot.from_config(metric.get_config())


def test_metrics_of_classes(points: Any) -> None:
    made: dict[str, Callable[[], Any]] = {
        "accuracy": M.SparseCategoricalAccuracy,
        "top2": lambda: M.SparseTopKCategoricalAccuracy(2),
        "entropy": M.SparseCategoricalCrossentropy,
        "auc": lambda: of_one_hot(M.AUC()),
        "auc_by_label": lambda: of_one_hot(M.AUC(multi_label=True, num_labels=3)),
        "precision": lambda: of_one_hot(M.Precision()),
        "recall": lambda: of_one_hot(M.Recall(class_id=1)),
        "sensitivity": lambda: of_one_hot(M.SensitivityAtSpecificity(0.5)),
        "f1": lambda: of_one_hot(M.F1Score("macro")),
        "iou": lambda: M.MeanIoU(3, sparse_y_pred=False),
        "mean": lambda: M.MeanMetricWrapper(lambda labels, outputs: outputs[:, 0]),
    }
    metrics_fn = lambda: {name: make() for name, make in made.items()}  # noqa: E731
    with evaluator(classifier(), points, metrics_fn, loss=SPARSE_LOSS) as one:
        whole = assert_splits_make_no_difference(one)
    assert set(whole.metrics) == {"loss", *made}
    assert whole.examples == 333


def test_metrics_of_numbers(points: Any) -> None:
    made = (
        M.RootMeanSquaredError,
        M.R2Score,
        M.MeanAbsoluteError,
        M.CosineSimilarity,
        M.LogCoshError,
    )
    features, labels = points
    data = (features, labels.astype(np.float32)[:, None])
    metrics_fn = lambda: {make.__name__: make() for make in made}  # noqa: E731
    with evaluator(regressor(), data, metrics_fn, loss="mse") as one:
        assert set(assert_splits_make_no_difference(one).metrics) == {
            "loss",
            *(make.__name__ for make in made),
        }


@pytest.mark.parametrize("name", BUILT_IN)
def test_whatever_keras_has_adds_to_variables(name: str) -> None:
    """Else states of workers could not be summed: a test that would notice when Keras changes."""
    made: Any = getattr(M, name)
    arguments = {
        "MeanIoU": {"num_classes": 2},
        "OneHotMeanIoU": {"num_classes": 2},
        "IoU": {"num_classes": 2, "target_class_ids": [0]},
        "OneHotIoU": {"num_classes": 2, "target_class_ids": [0]},
        "BinaryIoU": {"target_class_ids": [0]},
        "MeanMetricWrapper": {"fn": lambda labels, outputs: labels - outputs},
    }
    one_number = {"PrecisionAtRecall", "RecallAtPrecision", "SensitivityAtSpecificity"}
    one_number |= {"SpecificityAtSensitivity"}
    given = arguments.get(name, {})
    positional = (0.5,) if name in one_number else ()
    rng = np.random.default_rng(0)
    labels = np.eye(2, dtype=np.float32)[rng.integers(0, 2, 20)]
    outputs = rng.dirichlet((1, 1), 20).astype(np.float32)
    if name.startswith("Sparse"):
        labels = labels.argmax(1)
    rows = (
        (lambda s: (outputs[s],))
        if name in ("Mean", "Sum")
        else (lambda s: (labels[s], outputs[s]))
    )
    whole, first, second = (made(*positional, **given) for _ in range(3))
    for metric, slices in (
        (whole, (slice(7), slice(7, 20))),
        (first, [slice(7)]),
        (second, [slice(7, 20)]),
    ):
        for part in slices:
            metric.update_state(*rows(part))
    for variable, *added in zip(whole.variables, first.variables, second.variables, strict=True):
        np.testing.assert_allclose(
            variable, sum(np.asarray(v) for v in added), rtol=1e-5, atol=1e-6
        )


class Highest(keras.metrics.Metric):
    """Not a sum, though its variable does not say so. What it has depends on the order, too."""

    def __init__(self, name: str = "highest", **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.high = self.add_variable((), "zeros", name="high")
        self.moving = self.add_variable((), "zeros", name="moving")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self.high.assign(tf.maximum(self.high.value, tf.reduce_max(y_pred)))
        self.moving.assign(0.5 * self.moving.value + tf.reduce_mean(y_pred[:, 0]))

    def result(self) -> Any:
        return self.high + self.moving


def test_metrics_that_cannot_be_summed_see_the_minibatches_in_their_order(points: Any) -> None:
    metrics_fn = lambda: {"own": Highest(), "accuracy": M.SparseCategoricalAccuracy()}  # noqa: E731
    with evaluator(classifier(), points, metrics_fn, loss=SPARSE_LOSS) as one:
        assert_splits_make_no_difference(one)
        assert one.part(one.leases()[:1]).minibatches


def test_minibatches_travel_only_when_something_needs_them(points: Any) -> None:
    metrics_fn = lambda: {"accuracy": M.SparseCategoricalAccuracy()}  # noqa: E731
    with evaluator(classifier(), points, metrics_fn, loss=SPARSE_LOSS) as one:
        assert not one.part(one.leases()).minibatches


@pytest.mark.parametrize("block_bytes", [metrics.BLOCK_BYTES, 400])
def test_functions_are_called_on_the_same_blocks(
    points: Any, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    """The median is no mean of medians: it shows what the function was called with."""
    monkeypatch.setattr(metrics, "BLOCK_BYTES", block_bytes)

    def median(labels: Any, outputs: Any) -> Any:
        return np.median(np.asarray(outputs)[:, 0] * (1 + np.asarray(labels)))

    metrics_fn = lambda: {"median": median, "accuracy": M.SparseCategoricalAccuracy()}  # noqa: E731
    with evaluator(classifier(), points, metrics_fn, loss=SPARSE_LOSS) as one:
        assert_splits_make_no_difference(one)


def test_values_of_predictions(points: Any) -> None:
    def values(predictions: Any, labels: Any) -> dict[str, Any]:
        first = tf.reduce_max(predictions["size"]) - tf.cast(
            tf.reduce_min(labels["size"]), tf.float32
        )
        return {"widest": first, "kinds": tf.reduce_mean(predictions["kind"] ** 2)}

    features, labels = points
    data = (features, {"kind": labels, "size": features[:, :1]})
    loss = {"kind": "sparse_categorical_crossentropy", "size": "mse"}
    with evaluator(with_two_outputs(), data, values, loss=loss) as one:
        assert set(assert_splits_make_no_difference(one).metrics) == {"loss", "widest", "kinds"}


def test_metrics_by_output(points: Any) -> None:
    features, labels = points
    data = (features, {"kind": labels, "size": features[:, :1]})
    loss = {"kind": "sparse_categorical_crossentropy", "size": "mse"}
    metrics_fn = lambda: {  # noqa: E731
        "kind": {"accuracy": M.SparseCategoricalAccuracy()},
        "size": {"rmse": M.RootMeanSquaredError(), "r2": M.R2Score()},
    }
    with evaluator(with_two_outputs(), data, metrics_fn, loss=loss) as one:
        assert len(assert_splits_make_no_difference(one).metrics) == 4


class LooksAtFeatures(keras.Model):
    """Has a metric of its own, which is no sum, and updates it with the features."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = L.Dense(3, activation="softmax")
        self.seen = Highest("seen")

    def call(self, inputs: Any) -> Any:
        return self.dense(inputs)

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        self.seen.update_state(y, x, sample_weight)
        return super().compute_metrics(x, y, y_pred, sample_weight)


@pytest.mark.parametrize("make", [classifier, LooksAtFeatures])
def test_compiled_metrics_with_sample_weights_leave_those_of_the_training_alone(
    points: Any, make: Any
) -> None:
    model = make()
    model.compile(
        loss=SPARSE_LOSS, metrics=["accuracy"], weighted_metrics=[M.SparseCategoricalCrossentropy()]
    )
    data = (*points, np.linspace(0, 2, 333).astype(np.float32))
    with evaluator(model, data, compiled=True) as one:
        whole = assert_splits_make_no_difference(one)
        assert {"accuracy", "sparse_categorical_crossentropy"} <= set(whole.metrics)
        model.compute_metrics(points[0][:9], points[1][:9], model(points[0][:9]))
        training = [variable.numpy() for variable in model.metrics_variables]
        one.merge([one.part(one.leases())])
        for before, after in zip(training, model.metrics_variables, strict=True):
            np.testing.assert_array_equal(before, after)


def test_a_process_without_leases_merges_too(points: Any) -> None:
    """Some metrics have no variables before they see a minibatch."""
    features, labels = points
    data = (features, labels.astype(np.float32)[:, None])
    metrics_fn = lambda: {"r2": M.R2Score(), "mae": M.MeanAbsoluteError()}  # noqa: E731
    with (
        evaluator(regressor(), data, metrics_fn, loss="mse") as one,
        evaluator(regressor(), data, metrics_fn, loss="mse") as other,
    ):
        parts = [other.part([]), one.part(one.leases())]
        merged = other.merge(parts)
        assert merged.metrics == pytest.approx(evaluated(one).metrics, rel=1e-6)


def test_each_lease_counts_once(points: Any) -> None:
    with evaluator(classifier(), points, loss=SPARSE_LOSS) as one:
        done: list[int] = []
        part = one.part(one.leases(), lambda lease: done.append(lease.number))
        assert done == [lease.number for lease in one.leases()]
        with pytest.raises(AuditFailure, match=r"evaluated twice: \[0\]"):
            one.merge([part, one.part(one.leases()[:1])])
        with pytest.raises(AuditFailure, match="left out: "):
            one.merge([one.part(one.leases()[1:])])


def test_a_part_may_be_filtered_out_but_not_all(points: Any) -> None:
    features, labels = points
    labels = np.sort(labels)  # so there are leases that nothing is left of

    def only(kind: int) -> Any:
        return lambda dataset, mode: dataset.filter(lambda x, y: y == kind)

    with evaluator(classifier(), (features, labels), loss=SPARSE_LOSS, dataset_fn=only(2)) as one:
        assert one.part(one.leases()[:1]).sums[0].examples == 0
        assert assert_splits_make_no_difference(one).examples == (labels == 2).sum()
    with evaluator(classifier(), (features, labels), loss=SPARSE_LOSS, dataset_fn=only(2)) as one:
        empty = [replace(lease, examples=0) for lease in one.part(one.leases()).sums]
        with pytest.raises(DataError, match="left none of the 333 validation records"):
            one.merge([Part(tuple(empty), [])])


def test_labels_of_several_lengths_and_sparse_ones(points: Any) -> None:
    def labelled(dataset: Any, mode: Any) -> Any:
        def label(x: Any, y: Any) -> Any:
            return x, {"several": tf.range(y + 1), "sparse": tf.sparse.from_dense([y + 1, y])}

        return dataset.map(label)

    def length(labels: Any, outputs: Any) -> Any:
        values = tf.reduce_sum(labels["sparse"].flat_values)
        return tf.reduce_max(labels["several"].row_lengths()) + labels["several"].nrows() + values

    metrics_fn = lambda: {"length": length, "highest": Highest()}  # noqa: E731
    loss = lambda labels, output: tf.reduce_mean(output**2)  # noqa: E731
    objects = {"loss": loss, "dataset_fn": labelled}
    features, kinds = points[0][:90], points[1][:90]
    with evaluator(classifier(), (features, kinds), metrics_fn, **objects) as one:
        whole = assert_splits_make_no_difference(one)
    assert whole.metrics["length"] == 3 + 90 + (2 * kinds + 1).sum()


def test_tensors_of_every_kind_travel() -> None:
    ragged = tf.ragged.constant([[[1, 2], []], [[3]]])
    sparse = tf.sparse.from_dense([[0, 1], [2, 0]])
    given = {"a": (ragged, sparse), "b": [tf.constant([b"x", b"yz"]), None, tf.constant(2.5)]}
    back = tensors_of(travelled(plain(given)))
    assert back["a"][0].to_list() == ragged.to_list()
    assert tf.sparse.to_dense(back["a"][1]).numpy().tolist() == [[0, 1], [2, 0]]
    assert back["b"][0].numpy().tolist() == [b"x", b"yz"]
    assert back["b"][1:] == [None, 2.5]
