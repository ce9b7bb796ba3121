"""The one kernel for Adam's update computes what Keras computes."""

from __future__ import annotations

from collections.abc import Callable

import keras
import numpy as np
import pytest

from elasticdl.engine.fused import fuse_update

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
