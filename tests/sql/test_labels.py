"""Labels of all types: what was trained, measured and predicted is what stands in the table."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from elasticdl.errors import StatementError, UserError

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


@pytest.mark.parametrize("type_", ["HUGEINT", "DECIMAL(20, 0)", "UBIGINT", "BIGINT"])
def test_whole_numbers_of_any_type_are_classes_as_they_are(trips: Company, type_: str) -> None:
    rows = f"SELECT km, (9007199254740992 + (km > 20)::INT)::{type_} AS far FROM trips"
    trips.run(f"{rows} TRAIN LinearClassifier WITH train.epoch=2 LABEL far INTO halves")
    found = trips.rows(f"{rows} PREDICT USING halves")
    assert {type(row["predicted_far"]) for row in found} == {int}
    assert {row["predicted_far"] for row in found} <= {2**53, 2**53 + 1}
    described = trips.rows("DESCRIBE MODEL halves")
    assert any("9007199254740993" in str(row) for row in described)


def test_a_sum_of_integers_is_a_label_of_classes(trips: Company) -> None:
    rows = "SELECT km, load, sum(luck % 2) % 2 AS odd FROM trips GROUP BY ALL"
    trips.run(f"{rows} TRAIN LinearClassifier WITH train.epoch=2 LABEL odd INTO sums")
    assert {row["predicted_odd"] for row in trips.rows(f"{rows} PREDICT USING sums")} <= {0, 1}


@pytest.mark.parametrize("type_", ["HUGEINT", "UBIGINT"])
def test_labels_beyond_64_bits_are_refused(trips: Company, type_: str) -> None:
    rows = f"SELECT km, (9223372036854775807::{type_} + (km % 2)) AS huge FROM trips"
    with pytest.raises(UserError, match=r"beyond 64 bits.*Cast it to text"):
        trips.run(f"{rows} TRAIN LinearClassifier LABEL huge INTO huges")


def test_the_number_of_classes_may_be_said_and_must_be_right(trips: Company) -> None:
    rows = "SELECT km, load, km % 3 AS third FROM trips"
    trips.run(
        f"{rows} TRAIN DNNClassifier WITH model.n_classes=3, train.epoch=1 LABEL third INTO c"
    )
    assert trips.rows(f"{rows} EVALUATE c")
    for name in ("n_classes", "num_classes"):
        with pytest.raises(
            StatementError, match=f"Invalid {name} 5: the label .*has 3 classes"
        ) as e:
            trips.run(f"{rows} TRAIN DNNClassifier WITH model.{name}=5 LABEL third INTO c")
        assert f"model.{name}" in str(e.value)


def test_a_wrong_parameter_is_told_with_those_that_a_user_gives(trips: Company) -> None:
    with pytest.raises(StatementError, match="takes no parameter 'zzz'") as raised:
        trips.run("SELECT km, luck FROM trips TRAIN DNNRegressor WITH model.zzz=5 INTO r")
    message = str(raised.value)
    assert "hidden_units" in message
    assert not any(name in message for name in ("label_mean", "label_dtype", "trainable"))


def test_the_auc_of_rows_of_one_class_is_left_out(trips: Company) -> None:
    rows = "SELECT km, load, km > 20 AS far FROM trips"
    trips.run(f"{rows} TRAIN LinearClassifier WITH train.epoch=1 LABEL far INTO far")
    assert "auc" in {row["metric"] for row in trips.rows(f"{rows} EVALUATE far")}
    found = {row["metric"] for row in trips.rows(f"{rows} WHERE km > 20 EVALUATE far")}
    assert "auc" not in found
    assert {"loss", "accuracy", "precision"} <= found


@pytest.mark.parametrize("model", ["LinearClassifier", "LinearRegressor"])
def test_a_time_of_day_is_no_label(trips: Company, model: str) -> None:
    rows = "SELECT km, TIME '10:00:00' + INTERVAL (km) MINUTE AS clock FROM trips"
    with pytest.raises(UserError, match=r"'clock' is time64"):
        trips.run(f"{rows} TRAIN {model} LABEL clock INTO never")


def test_all_columns_that_no_model_takes_are_named_at_once(trips: Company) -> None:
    rows = "SELECT *, [km] AS many, {'a': km} AS pair, INTERVAL (km) DAY AS span FROM trips"
    with pytest.raises(UserError, match=r"'many' .*'pair' .*'span' .*are no single values"):
        trips.run(f"{rows} TRAIN LinearRegressor LABEL arrival INTO never")
