"""Fitted models that are not Keras', in a file and out of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from elasticdl.errors import ContractError, CorruptData, InvalidValue, NotFound
from elasticdl.experiments.estimators import ESTIMATOR, load_estimator, save_estimator


@pytest.fixture
def fitted() -> Any:
    return LogisticRegression().fit(np.arange(10.0)[:, None], np.arange(10) > 4)


def test_a_model_predicts_the_same_when_it_was_loaded(fitted: Any, tmp_path: Path) -> None:
    assert save_estimator(fitted, tmp_path) == tmp_path / ESTIMATOR
    points = np.linspace(0, 9, 50)[:, None]
    for where in (tmp_path, tmp_path / ESTIMATOR):
        loaded = load_estimator(where)
        np.testing.assert_array_equal(loaded.predict_proba(points), fitted.predict_proba(points))


def test_a_model_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="There is no fitted model"):
        load_estimator(tmp_path)


def test_a_file_of_something_else_is_told(tmp_path: Path) -> None:
    (tmp_path / ESTIMATOR).write_bytes(b"nothing")
    with pytest.raises(CorruptData, match="cannot be loaded"):
        load_estimator(tmp_path)


class Stranger:
    """A type that nobody vouches for."""

    value = 3


def test_a_type_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=r"asks for .*Stranger, which is not known to be safe"):
        save_estimator(Stranger(), tmp_path)


def test_what_cannot_be_saved_is_told(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="cannot be saved"):
        save_estimator((i for i in range(3)), tmp_path)
