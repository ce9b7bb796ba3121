from __future__ import annotations

from typing import Any

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _tensorflow(tensorflow: None) -> None:
    """Every test of the engine needs TensorFlow."""


@pytest.fixture
def points(same_points: tuple[Any, Any]) -> tuple[Any, Any]:
    """A test's own, to do with as it likes."""
    features, labels = same_points
    return features.copy(), labels.copy()


@pytest.fixture(scope="session")
def same_points() -> tuple[Any, Any]:
    """333 points in four dimensions, in three classes that can be told apart."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 333)
    features = rng.normal(size=(333, 4)).astype(np.float32) + labels[:, None]
    return features.astype(np.float32), labels
