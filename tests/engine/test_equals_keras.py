"""The numbers are Keras' own: the same weights as `fit`, the same metrics as `evaluate`."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import elasticdl

L = keras.layers
RUN = {"minibatch_size": 32, "shuffle_tasks": False, "seed": 1}


def classifier() -> keras.Model:
    return keras.Sequential(
        [keras.Input((4,)), L.Dense(8, activation="tanh", kernel_regularizer="l2"), L.Dense(3)]
    )


def cross_entropy() -> keras.losses.Loss:
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def trained(model: keras.Model, data: Any, **options: Any) -> tuple[keras.Model, elasticdl.Result]:
    result = elasticdl.train(model, data, **{**RUN, **options})
    return keras.models.load_model(result.model_path / "model.keras", compile=False), result


def fitted(
    model: keras.Model, optimizer: Any, loss: Any, *data: Any, **options: Any
) -> keras.Model:
    model.compile(optimizer=optimizer, loss=loss)
    model.fit(*data, batch_size=32, shuffle=False, verbose=0, **options)
    return model


def assert_same_weights(ours: keras.Model, theirs: keras.Model) -> None:
    for mine, other in zip(ours.get_weights(), theirs.get_weights(), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda: keras.optimizers.SGD(0.1, momentum=0.9),
        lambda: keras.optimizers.Adam(0.01),
        lambda: keras.optimizers.RMSprop(0.01),
    ],
    ids=["sgd", "adam", "rmsprop"],
)
@pytest.mark.parametrize("num_minibatches_per_task", [1, 4, 64])
def test_weights_equal_fit_after_two_epochs(
    points: Any, optimizer: Any, num_minibatches_per_task: int
) -> None:
    model, twin = classifier(), classifier()
    twin.set_weights(model.get_weights())
    ours, _ = trained(
        model,
        points,
        loss=cross_entropy(),
        optimizer=optimizer,
        num_epochs=2,
        num_minibatches_per_task=num_minibatches_per_task,
    )
    assert_same_weights(ours, fitted(twin, optimizer(), cross_entropy(), *points, epochs=2))


def test_weights_equal_fit_with_sample_weights(points: Any) -> None:
    features, labels = points
    weights = np.linspace(0, 2, len(labels)).astype(np.float32)
    model, twin = classifier(), classifier()
    twin.set_weights(model.get_weights())
    ours, _ = trained(
        model, (features, labels, weights), loss=cross_entropy(), optimizer="sgd", num_epochs=2
    )
    theirs = fitted(twin, "sgd", cross_entropy(), features, labels, sample_weight=weights, epochs=2)
    assert_same_weights(ours, theirs)


def test_weights_equal_fit_when_a_function_returns_a_loss_an_example(points: Any) -> None:
    features, labels = points
    weights = np.linspace(0, 2, len(labels)).astype(np.float32)
    model, twin = classifier(), classifier()
    twin.set_weights(model.get_weights())

    def loss(labels: Any, output: Any) -> Any:
        return keras.losses.sparse_categorical_crossentropy(labels, output, from_logits=True)

    ours, _ = trained(model, (features, labels, weights), loss=loss, optimizer="sgd")
    assert_same_weights(
        ours, fitted(twin, "sgd", cross_entropy(), features, labels, sample_weight=weights)
    )


def two_by_two() -> keras.Model:
    wide, deep = keras.Input((4,), name="wide"), keras.Input((2,), name="deep")
    joined = L.Concatenate()([L.Dense(6, activation="tanh")(wide), deep])
    return keras.Model(
        [wide, deep], {"kind": L.Dense(3, name="kind")(joined), "size": L.Dense(1)(joined)}
    )


def test_weights_equal_fit_with_several_inputs_and_outputs(points: Any) -> None:
    features, labels = points
    inputs = {"wide": features, "deep": features[:, :2] * 2}
    outputs = {"kind": labels, "size": features.sum(axis=1)}
    losses = {"kind": cross_entropy(), "size": "mse"}
    model, twin = two_by_two(), two_by_two()
    twin.set_weights(model.get_weights())
    ours, result = trained(
        model,
        (inputs, outputs),
        loss=losses,
        optimizer="sgd",
        num_epochs=2,
        dataset_fn=lambda dataset, mode: dataset,
        validation_data=(inputs, outputs),
        eval_metrics_fn=lambda: {
            "kind": {"accuracy": keras.metrics.SparseCategoricalAccuracy()},
            "size": {"mae": lambda labels, predictions: abs(labels - predictions[:, 0])},
        },
    )
    assert_same_weights(ours, fitted(twin, "sgd", losses, inputs, outputs, epochs=2))
    predictions = twin.predict(inputs, verbose=0)
    expected = {
        "kind_accuracy": (predictions["kind"].argmax(axis=1) == labels).mean(),
        "size_mae": abs(predictions["size"][:, 0] - outputs["size"]).mean(),
    }
    assert {n: result.metrics[n] for n in expected} == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("minibatch_size", [1, 7, 64, 1000])
def test_metrics_equal_evaluate_whatever_the_batch_size(points: Any, minibatch_size: int) -> None:
    model, twin = classifier(), classifier()
    twin.set_weights(model.get_weights())
    twin.compile(loss=cross_entropy(), metrics=["accuracy"])
    expected = twin.evaluate(*points, verbose=0, return_dict=True)

    def metrics() -> dict[str, Any]:
        return {
            "accuracy": keras.metrics.SparseCategoricalAccuracy(),
            "right": lambda labels, predictions: np.argmax(predictions, 1) == np.asarray(labels),
            "largest": lambda labels, predictions: np.max(np.asarray(predictions)),
        }

    result = elasticdl.train(
        model,
        points,
        validation_data=points,
        loss=cross_entropy(),
        optimizer=keras.optimizers.SGD(0.0),
        eval_metrics_fn=metrics,
        minibatch_size=minibatch_size,
        num_minibatches_per_task=5,
    )
    assert result.metrics["loss"] == pytest.approx(expected["loss"], rel=1e-5)
    assert result.metrics["accuracy"] == pytest.approx(expected["accuracy"], rel=1e-6)
    assert result.metrics["right"] == pytest.approx(expected["accuracy"], rel=1e-6)
    assert result.metrics["largest"] == pytest.approx(
        twin.predict(points[0], verbose=0).max(), rel=1e-5
    )


def test_history_has_keras_names(points: Any) -> None:
    _, result = trained(
        classifier(),
        points,
        loss=cross_entropy(),
        optimizer="sgd",
        num_epochs=3,
        validation_data=points,
        eval_metrics_fn=lambda: {"accuracy": keras.metrics.SparseCategoricalAccuracy()},
    )
    assert set(result.history) == {"loss", "val_loss", "val_accuracy"}
    assert len(result.history["loss"]) == 3
    assert result.history["loss"][-1] < result.history["loss"][0]


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_weights_equal_fit_in_mixed_precision(points: Any, policy: str) -> None:
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        model, twin = classifier(), classifier()
        twin.set_weights(model.get_weights())
        ours, _ = trained(model, points, loss=cross_entropy(), optimizer="adam", num_epochs=2)
        assert_same_weights(ours, fitted(twin, "adam", cross_entropy(), *points, epochs=2))
    finally:
        keras.config.set_dtype_policy(before)
