from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tables import people, plan_of

from elasticdl.tabular.plan import FeaturePlan


@pytest.fixture(scope="session")
def table() -> pa.Table:
    return people()


@pytest.fixture(scope="session")
def plan(table: pa.Table) -> FeaturePlan:
    return plan_of(table, "salary")


@pytest.fixture
def keras(tensorflow: None) -> Any:
    """For the tests that build models."""
    import keras

    return keras
