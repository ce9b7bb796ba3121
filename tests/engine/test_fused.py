"""The one kernel for Adam's update, and that for batch normalization, compute what Keras computes."""

from __future__ import annotations

from collections.abc import Callable

import keras
import numpy as np
import pytest
import tensorflow as tf

from elasticdl.engine.fused import fuse_normalizations, fuse_update

pytestmark = pytest.mark.usefixtures("tensorflow")

L, O = keras.layers, keras.optimizers  # noqa: E741
OPTIMIZERS: dict[str, Callable[[], keras.optimizers.Optimizer]] = {
    "adam": lambda: O.Adam(0.01),
    "adam with all": lambda: O.Adam(
        O.schedules.ExponentialDecay(0.01, 5, 0.5),
        clipnorm=0.1,
        use_ema=True,
        ema_overwrite_frequency=3,
    ),
    "adam, accumulating": lambda: O.Adam(0.01, gradient_accumulation_steps=2),
    "adamw": lambda: O.AdamW(0.01, weight_decay=0.1),
    "amsgrad": lambda: O.Adam(0.01, amsgrad=True),
    "nadam": lambda: O.Nadam(0.01),
}


def trained(make: Callable[[], keras.optimizers.Optimizer], fused: bool) -> list[np.ndarray]:
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [keras.Input((4,)), L.Embedding(9, 5), L.Flatten(), L.Dense(7, "relu"), L.Dense(1)]
    )
    model.compile(make(), "mse")
    model.optimizer.build(model.trainable_variables)
    if fused:
        fuse_update(model.optimizer)
    rng = np.random.default_rng(1)
    model.fit(rng.integers(0, 9, (32, 4)), rng.normal(size=32), batch_size=4, epochs=2, verbose=0)
    return [variable.numpy() for variable in (*model.variables, *model.optimizer.variables)]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_fused_update_equals_keras(name: str) -> None:
    for one, other in zip(
        trained(OPTIMIZERS[name], True), trained(OPTIMIZERS[name], False), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6)


def test_only_what_the_kernel_computes_is_replaced() -> None:
    class Own(O.Adam):
        pass

    for optimizer in (O.SGD(), O.Adam(amsgrad=True), Own()):
        fuse_update(optimizer)
        assert "update_step" not in vars(optimizer)


BATCHES = {
    "as it is by default": {},
    "without its own weights": {"scale": False, "center": False},
    "with all": {"momentum": 0.3, "epsilon": 0.1, "gamma_regularizer": "l2", "axis": 3},
    "of the first axis": {"axis": 1},
    "that is kept as it is": {"trainable": False},
    "in half precision": {"dtype": "mixed_bfloat16"},
    "in double precision": {"dtype": "float64"},
    "renormalizing": {"renorm": True},
}


def normalized(how: dict, shape: tuple[int, ...], fused: bool) -> list[np.ndarray]:
    """What comes out, its gradients, and the moving statistics, after some steps."""
    keras.utils.set_random_seed(3)
    layer = L.BatchNormalization(**how)
    model = keras.Sequential([keras.Input(shape[1:]), layer])
    if fused:
        fuse_normalizations(model)
    rng, found = np.random.default_rng(1), []
    for _ in range(3):
        pixels = tf.constant(rng.normal(2.0, 3.0, shape).astype("float32"))
        aim = tf.constant(rng.normal(size=shape).astype("float32"))
        with tf.GradientTape() as tape:
            tape.watch(pixels)
            outputs = tf.cast(model(pixels, training=True), tf.float32)
            loss = tf.reduce_sum(outputs * aim) + sum(model.losses)
        watched = [pixels, *(v.value for v in model.trainable_variables)]
        gradients = tape.gradient(loss, watched)
        found += [outputs, *gradients]
        for variable, gradient in zip(watched[1:], gradients[1:], strict=True):
            variable.assign_sub(0.1 * gradient)
    found += [model(pixels, training=False), *model.variables]
    return [keras.ops.convert_to_numpy(keras.ops.cast(each, "float32")) for each in found]


@pytest.mark.parametrize("how", BATCHES)
@pytest.mark.parametrize("shape", [(8, 5, 4, 3), (1, 1, 1, 2), (8, 3)])
def test_fused_normalization_equals_keras(how: str, shape: tuple[int, ...]) -> None:
    if BATCHES[how].get("axis") == 3 and len(shape) != 4:
        return
    rtol = 2e-2 if "half" in how else 1e-4
    for one, other in zip(
        normalized(BATCHES[how], shape, True), normalized(BATCHES[how], shape, False), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)


def test_only_the_training_of_pictures_is_by_the_kernel() -> None:
    class Own(L.BatchNormalization):
        pass

    def kernels(layer: keras.layers.Layer, shape: tuple[int, ...], training: bool) -> int:
        model = keras.Sequential([keras.Input(shape), layer])
        fuse_normalizations(model)
        fuse_normalizations(model)  # a model may be trained twice
        call = tf.function(lambda pixels: model(pixels, training=training))
        graph = call.get_concrete_function(tf.TensorSpec([None, *shape])).graph
        return sum(op.type == "FusedBatchNormV3" for op in graph.get_operations())

    picture = (4, 4, 2)
    assert kernels(L.BatchNormalization(), picture, True) == 1
    assert kernels(L.BatchNormalization(), picture, False) == 0
    assert kernels(L.BatchNormalization(), (4,), True) == 0
    assert kernels(L.BatchNormalization(synchronized=True), picture, True) == 0
    assert kernels(Own(), picture, True) == 0
