"""Labels of all types: what was trained, measured and predicted is what stands in the table."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from .conftest import Company

ARRIVALS = """
CREATE TABLE trips AS SELECT
    i % 40 AS km, (i * 7) % 11 AS load, (i * 13) % 50 AS luck,
    1700000000 + 4 * (i % 40) + (i * 13) % 50 AS arrival
FROM range(400) t(i);
"""


@pytest.fixture
def trips(tmp_path: Path) -> Company:
    company = Company(tmp_path / "trips.duckdb", tmp_path / "models")
    with duckdb.connect(str(company.path)) as connection:
        connection.execute(ARRIVALS)
    return company


def test_metrics_of_labels_far_from_zero_are_those_of_the_predictions(trips: Company) -> None:
    trips.run(
        "SELECT km, load, arrival FROM trips TRAIN LinearRegressor "
        "WITH train.epoch=20, model.learning_rate=0.1 LABEL arrival INTO eta"
    )
    found = trips.rows("SELECT km, load, arrival FROM trips EVALUATE eta")
    metrics = {row["metric"]: row["value"] for row in found}
    rows = trips.rows("SELECT km, load, arrival FROM trips PREDICT USING eta")
    labels = np.array([row["arrival"] for row in rows], np.float64)
    errors = np.array([row["predicted_arrival"] for row in rows]) - labels
    assert metrics["mae"] == pytest.approx(np.abs(errors).mean(), rel=1e-4)
    assert metrics["mse"] == pytest.approx(np.square(errors).mean(), rel=1e-4)
    assert metrics["r2"] == pytest.approx(1 - np.square(errors).mean() / labels.var(), rel=1e-4)
    assert 8 < metrics["mae"] < 20  # of luck, which is not selected: 12.5
    predicted = pa.array([row["predicted_arrival"] for row in rows])
    assert len(predicted.unique()) > 20
