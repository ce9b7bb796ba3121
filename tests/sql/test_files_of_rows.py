"""A model that SQL trained reads files too: rows mean the same, wherever they come from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import elasticdl
from elasticdl.errors import DataError

from .conftest import Company, make_company

TIMES = """
CREATE TABLE visits AS SELECT
    CASE WHEN i % 11 = 5 THEN NULL ELSE DATE '2020-01-01' + (i * 5)::INT END AS born,
    CASE WHEN i % 13 = 6 THEN NULL ELSE TIMESTAMP '2024-03-01 10:30:00' + INTERVAL (i) HOUR END AS seen,
    CASE WHEN i % 7 = 2 THEN NULL ELSE TIMESTAMPTZ '2024-03-01 10:30:00+02' + INTERVAL (i) MINUTE END AS sent,
    CASE WHEN i % 5 = 1 THEN NULL ELSE i % 9 END AS visits,
    CASE WHEN i % 5 = 3 THEN NULL ELSE i % 2 = 0 END AS adult,
    ['red', 'green'][1 + i % 2] AS colour,
    (i * 3 + (i % 9) * 20)::DOUBLE AS paid
FROM range(300) t(i);
SELECT * FROM visits TO TRAIN DNNRegressor WITH model.hidden_units=[8], train.epoch=3 LABEL paid INTO times;
"""


@pytest.fixture(scope="module")
def visits(tmp_path_factory: pytest.TempPathFactory) -> Company:
    company = make_company(tmp_path_factory.mktemp("visits"))
    company.run(TIMES)
    return company


@pytest.fixture(scope="module")
def by_sql(visits: Company) -> tuple[dict[str, float], list[float]]:
    """Metrics and predictions of all rows."""
    found = visits.rows("SELECT * FROM visits EVALUATE times")
    predicted = visits.rows("SELECT * FROM visits PREDICT USING times")
    metrics = {row["metric"]: row["value"] for row in found}
    return metrics, [row["predicted_paid"] for row in predicted]


def _parquet(table: pa.Table, path: Path) -> Path:
    pq.write_table(table, path.with_suffix(".parquet"), row_group_size=70)
    return path.with_suffix(".parquet")


def _csv(table: pa.Table, path: Path) -> Path:
    pyarrow.csv.write_csv(table, path.with_suffix(".csv"))
    return path.with_suffix(".csv")


def _arrow(table: pa.Table, path: Path) -> Path:
    path = path.with_suffix(".arrow")
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table, 70)
    return path


Write = Callable[[pa.Table, Path], Path]


@pytest.mark.parametrize("write", [_parquet, _csv, _arrow])
def test_files_give_the_numbers_that_sql_gives(
    visits: Company, by_sql: tuple[dict[str, float], list[float]], write: Write, tmp_path: Path
) -> None:
    rows = visits.run("SELECT * FROM visits").rows
    assert rows is not None
    path = write(rows.to_table(), tmp_path / "visits")
    model = visits.models / "times" / "1"
    result = elasticdl.evaluate(trained_model=str(model), validation_data=str(path))
    assert result.metrics == pytest.approx(by_sql[0], rel=1e-5)
    out = elasticdl.predict(trained_model=str(model), prediction_data=str(path))
    assert np.ravel(out.predictions) == pytest.approx(by_sql[1], rel=1e-5)


@pytest.mark.parametrize("write", [_parquet, _csv])
def test_files_without_a_column_of_the_model_are_refused(
    visits: Company, write: Write, tmp_path: Path
) -> None:
    rows = visits.run("SELECT * EXCLUDE (seen) FROM visits").rows
    assert rows is not None
    path = write(rows.to_table(), tmp_path / "visits")
    with pytest.raises(DataError, match=r"visits\.\w+: The rows have no column 'seen'"):
        elasticdl.evaluate(
            trained_model=str(visits.models / "times" / "1"), validation_data=str(path)
        )


def test_texts_of_a_file_that_do_not_become_times_are_refused(
    visits: Company, tmp_path: Path
) -> None:
    rows = visits.run("SELECT * REPLACE ('soon' AS born) FROM visits").rows
    assert rows is not None
    path = _csv(rows.to_table(), tmp_path / "visits")
    with pytest.raises(DataError, match="'born' was date32"):
        elasticdl.evaluate(
            trained_model=str(visits.models / "times" / "1"), validation_data=str(path)
        )
