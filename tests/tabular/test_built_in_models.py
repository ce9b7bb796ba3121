"""The built-in models: they learn, in any unit; parameters are checked; metrics are those of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sklearn.metrics
import tensorflow as tf
from tables import call, clause, plan_of, tensors_of

from elasticdl.contract.load import load_spec
from elasticdl.contract.spec import Spec
from elasticdl.errors import InvalidValue
from elasticdl.tabular.expression import ColumnGroup
from elasticdl.tabular.inputs import TableBatches
from elasticdl.tabular.layers import wrap
from elasticdl.tabular.models import ALIASES, BUILT_IN, targets_of, task_of
from elasticdl.tabular.plan import FeaturePlan

pytestmark = pytest.mark.usefixtures("tensorflow")

MODELS = sorted(set(ALIASES.values()))


def spec_of(model: str, **params: Any) -> Spec:
    return load_spec(model, model_zoo=BUILT_IN, model_params=params)


def params_of(plan: FeaturePlan) -> dict[str, Any]:
    assert plan.label is not None
    if plan.label.classes:
        return {"num_classes": len(plan.label.classes)}
    return {"label_mean": plan.label.mean, "label_std": plan.label.std}


def fitted(spec: Spec, rows: pa.Table, plan: FeaturePlan, epochs: int) -> dict[str, float]:
    """What plain Keras makes of a spec: its metrics after some epochs."""
    import keras

    keras.utils.set_random_seed(0)
    model = wrap(spec.build_model, plan)
    model.compile(
        spec.make_optimizer(),
        lambda labels, outputs: spec.loss(labels, outputs, None),
        metrics=[one.metric for one in spec.metrics()],
    )
    label = plan.label
    assert label is not None
    values = rows.column(label.name).to_pylist()
    y = np.array([label.classes.index(v) for v in values] if label.classes else values)[:, None]
    y = y.astype(np.int64 if label.classes else np.float32)
    model.fit(tensors_of(rows, plan), y, epochs=epochs, batch_size=32, verbose=0)
    return dict(model.evaluate(tensors_of(rows, plan), y, verbose=0, return_dict=True))


def test_every_alias_names_a_model_and_its_task() -> None:
    assert ALIASES["DNNClassifier"] == "classifier.DNN"
    assert ALIASES["LinearRegressor"] == "regressor.Linear"
    assert (
        ALIASES["DNNLinearCombinedRegressor"]
        == ALIASES["WideAndDeepRegressor"]
        == "regressor.WideAndDeep"
    )
    for name, model in ALIASES.items():
        assert task_of(name) == task_of(model) is not None
        assert spec_of(model).build_model()
    assert task_of("mnist.model") is None
    assert targets_of("DNNLinearCombinedRegressor") == ("linear", "dnn")
    assert targets_of("DNNRegressor") == ()


def test_a_salary_is_learnt_in_a_few_epochs_with_the_seeds_parameters(table: pa.Table) -> None:
    rows = table.select(["age", "role", "salary"])
    plan = plan_of(rows, "salary", task="regression")
    spec = spec_of(
        "regressor.DNN", hidden_units=[10, 100, 20, 5], learning_rate=0.01, **params_of(plan)
    )
    scores = fitted(spec, rows, plan, epochs=12)
    assert scores["r2_score"] > 0.8
    assert scores["loss"] < 0.2


def test_a_linear_model_learns(table: pa.Table) -> None:
    rows = table.select(["age", "role", "salary"])
    plan = plan_of(rows, "salary", task="regression")
    spec = spec_of("regressor.Linear", learning_rate=0.05, **params_of(plan))
    assert fitted(spec, rows, plan, epochs=15)["r2_score"] > 0.7


def test_a_classifier_learns() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=300)
    names = np.where(x < -0.5, "low", np.where(x < 0.5, "middle", "top"))
    rows = pa.table({"x": x, "noise": random.normal(size=300), "y": names.tolist()})
    plan = plan_of(rows, "y")
    spec = spec_of("classifier.WideAndDeep", learning_rate=0.05, **params_of(plan))
    assert fitted(spec, rows, plan, epochs=15)["sparse_categorical_accuracy"] > 0.85


@pytest.mark.parametrize("model", MODELS)
def test_outputs_are_numbers_or_probabilities(model: str) -> None:
    is_classifier = task_of(model) == "classification"
    spec = spec_of(
        model, **({"num_classes": 3} if is_classifier else {"label_mean": 5e4, "label_std": 1e4})
    )
    output = spec.build_model()(tf.random.stateless_normal([9, 4], [1, 2])).numpy()
    if is_classifier:
        np.testing.assert_allclose(output.sum(-1), np.ones(9), rtol=1e-5)
        assert output.shape == (9, 3) and (output >= 0).all()
    else:
        assert output.shape == (9, 1)
        assert output.mean() == pytest.approx(5e4, abs=3e4)


def test_wide_and_deep_takes_two_matrices() -> None:
    rows = pa.table(
        {
            "a": ["x", "y"] * 10,
            "b": ["p", "q", "q", "p"] * 5,
            "n": range(20),
            "y": [1.0, 2, 3, 0] * 5,
        }
    )
    groups = [
        ColumnGroup([call("CROSS", ("a", "b"), 10)], "linear"),
        ColumnGroup([call("DENSE", "n"), call("EMBEDDING", "a", 2)], "dnn"),
    ]
    plan = plan_of(rows, "y", task="regression", groups=groups, targets=("linear", "dnn"))
    spec = spec_of("regressor.WideAndDeep", learning_rate=0.3, optimizer="sgd", **params_of(plan))
    assert fitted(spec, rows, plan, epochs=20)["r2_score"] > 0.9


def test_wide_and_deep_refuses_other_inputs() -> None:
    rows = pa.table({"a": [1.0, 2], "b": [1.0, 3], "y": [1.0, 2]})
    groups = [*clause(call("DENSE", "a"), target="wide"), *clause(call("DENSE", "b"), target="dnn")]
    plan = plan_of(rows, "y", task="regression", groups=groups)
    spec = spec_of("regressor.WideAndDeep", **params_of(plan))
    with pytest.raises(Exception, match=r"inputs linear and dnn"):
        wrap(spec.build_model, plan)


def test_other_models_take_all_targets_as_one() -> None:
    rows = pa.table({"a": [1.0, 2], "b": [1.0, 3], "y": [1.0, 2]})
    groups = [*clause(call("DENSE", "a"), target="one"), *clause(call("DENSE", "b"), target="two")]
    plan = plan_of(rows, "y", task="regression", groups=groups)
    model = wrap(spec_of("regressor.DNN", **params_of(plan)).build_model, plan)
    assert model(tensors_of(rows, plan)).shape == (2, 1)


def test_all_parameters_have_their_effect() -> None:
    params = {
        "hidden_units": [8],
        "dropout": 0.5,
        "activation": "tanh",
        "batch_norm": True,
        "l2": 0.1,
    }
    model = spec_of("classifier.DNN", num_classes=3, optimizer="RMSprop", **params).build_model()
    output = model(tf.ones([2, 4]))
    np.testing.assert_allclose(tf.reduce_sum(output, -1), [1, 1], rtol=1e-5)
    assert output.shape == (2, 3)
    kinds = [type(layer).__name__ for layer in model.hidden]
    assert kinds == ["Dense", "BatchNormalization", "Activation", "Dropout"]
    assert model.losses
    optimizer = spec_of("classifier.DNN", optimizer="RMSprop", learning_rate=1).make_optimizer()
    assert type(optimizer).__name__ == "RMSprop"
    assert float(optimizer.learning_rate) == 1.0


@pytest.mark.parametrize("model", MODELS)
def test_unknown_parameters_are_refused_with_the_nearest(model: str) -> None:
    with pytest.raises(InvalidValue, match=r"learning_rat.*Did you mean 'learning_rate'"):
        spec_of(model, learning_rat=0.1)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"hidden_units": [10, 0]}, "hidden_units"),
        ({"hidden_units": [1.5]}, "hidden_units"),
        ({"dropout": 1.5}, "dropout"),
        ({"l2": -1}, "l2"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"learning_rate": "fast"}, "learning_rate"),
        ({"activation": "rellu"}, "no activation 'rellu'.*Did you mean 'relu'"),
        ({"optimizer": "adm"}, "no optimizer 'adm'.*Did you mean 'Adam'"),
        ({"num_classes": 1}, "num_classes"),
    ],
)
def test_wrong_values_are_refused(params: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        spec_of("classifier.DNN", **params).build_model()


@pytest.mark.parametrize("num_classes", [2, 4])
def test_scores_are_those_of_scikit_learn(num_classes: int) -> None:
    random = np.random.default_rng(0)
    labels = random.integers(0, num_classes, 200)
    outputs = random.dirichlet(np.ones(num_classes), 200).astype(np.float32)
    metrics = {
        one.name: one.metric for one in spec_of("classifier.DNN", num_classes=num_classes).metrics()
    }
    for metric in metrics.values():
        for rows in (slice(0, 70), slice(70, 200)):
            metric.update_state(tf.constant(labels[rows, None]), tf.constant(outputs[rows]))
    found = {name: float(metric.result()) for name, metric in metrics.items()}
    chosen, average = outputs.argmax(1), "binary" if num_classes == 2 else "macro"
    expected = {
        "accuracy": sklearn.metrics.accuracy_score(labels, chosen),
        "precision": sklearn.metrics.precision_score(labels, chosen, average=average),
        "recall": sklearn.metrics.recall_score(labels, chosen, average=average),
        "f1": sklearn.metrics.f1_score(labels, chosen, average=average),
    }
    if num_classes == 2:
        expected["auc"] = sklearn.metrics.roc_auc_score(labels, outputs[:, 1])
    assert found == pytest.approx(expected, abs=0.01)


def test_r2_is_right_far_from_zero() -> None:
    random = np.random.default_rng(0)
    labels = (random.normal(2000, 0.5, 5000)).astype(np.float32)[:, None]
    outputs = labels + random.normal(0, 0.25, labels.shape).astype(np.float32)
    spec = spec_of("regressor.DNN", label_mean=2000.0, label_std=0.5)
    metrics = {one.name: one.metric for one in spec.metrics()}
    for metric in metrics.values():
        metric.update_state(labels, outputs)
    assert float(metrics["r2"].result()) == pytest.approx(
        sklearn.metrics.r2_score(labels, outputs), abs=1e-3
    )
    rmse = np.sqrt(sklearn.metrics.mean_squared_error(labels, outputs))
    assert float(metrics["rmse"].result()) == pytest.approx(rmse, rel=1e-3)
    assert set(metrics) == {"mse", "mae", "rmse", "r2"}


def test_batches_of_a_plan_train_a_model(table: pa.Table, plan: FeaturePlan) -> None:
    from tables import arrays_of

    spec = spec_of("regressor.DNN", **params_of(plan))
    model = wrap(spec.build_model, plan)
    model.compile("adam", "mse")
    chunks = tf.data.Dataset.from_tensors(arrays_of(table, plan, label=True))
    seed = tf.constant(1, tf.int64)
    batches = TableBatches(plan).from_chunks(chunks, "training", 100, seed)
    batches = batches.apply(tf.data.experimental.assert_cardinality(3))
    history = model.fit(batches, epochs=2, verbose=0, shuffle=False).history["loss"]
    assert history[1] < history[0]
