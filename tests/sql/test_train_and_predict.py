"""What a SQL user does: train, predict, evaluate, explain, show, drop."""

from __future__ import annotations

import json
import re
from pathlib import Path

import duckdb
import numpy as np
import pytest

import elasticdl
from elasticdl.errors import StatementError
from elasticdl.sql.registry import Registry
from seeds import MISSING, SEEDS

from .conftest import ROWS, Company, make_company

SELECTED = "SELECT name, role, age, salary FROM employee"


@pytest.mark.skipif(not SEEDS.is_dir(), reason=MISSING)
def test_the_seeds_statements_run_as_printed(tmp_path: Path) -> None:
    text = next(SEEDS.glob("002*")).read_text()
    train, predict = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    company = make_company(tmp_path)
    outcome = company.run(train)
    assert "The label is salary, the last selected column." in company.told
    assert "Trained my_trained_model@1" in outcome.message
    before = company.rows("SELECT * FROM testdata")
    company.run(predict)
    after = company.rows("SELECT * FROM testdata")
    assert [{k: v for k, v in row.items() if k != "predicted_salary"} for row in after] == before
    truth = {row["name"]: row["salary"] for row in company.rows("SELECT * FROM employee")}
    errors = [abs(row["predicted_salary"] - truth[row["name"]]) for row in after]
    assert np.mean(errors) < 8000  # where the mean as a guess gives 13,000


def test_the_run_is_an_ordinary_one(trained: Company) -> None:
    version = Registry(trained.models).find("pay")
    job = json.loads((version.path / "job.json").read_text())
    assert job["model_def"] == "regressor.DNN"
    assert job["num_epochs"] == 40
    assert (version.path / "events.jsonl").exists()
    assert (version.path / "model" / "saved_model").is_dir()
    assert any(event["event"] == "epoch" for event in trained.events)


def test_predictions_come_back_as_rows_with_all_columns(trained: Company) -> None:
    rows = trained.rows(f"{SELECTED} PREDICT USING pay;")
    assert list(rows[0]) == ["name", "role", "age", "salary", "predicted_salary"]
    assert len(rows) == ROWS
    errors = [abs(row["salary"] - row["predicted_salary"]) for row in rows]
    assert np.mean(errors) < 3000
    assert [row["name"] for row in rows] == [f"n{i}" for i in range(ROWS)]


def test_classes_are_decoded_and_probabilities_are_given(trained: Company) -> None:
    rows = trained.rows(
        "SELECT * FROM employee TO PREDICT USING wealth WITH predict.probabilities=true;"
    )
    right = [row["predicted_rich"] is (row["salary"] > 45000) for row in rows]
    assert np.mean(right) > 0.95
    for row in rows[:10]:
        assert row["probability_true"] + row["probability_false"] == pytest.approx(1)
        assert row["predicted_rich"] is (row["probability_true"] > 0.5)


def test_predictions_equal_those_of_the_saved_model_on_raw_columns(trained: Company) -> None:
    import tensorflow as tf

    rows = trained.rows(f"{SELECTED} PREDICT USING pay;")
    path = Registry(trained.models).find("pay").path / "model" / "saved_model"
    signature = tf.saved_model.load(str(path)).signatures["serving_default"]
    (output,) = signature(
        role=tf.constant([row["role"] for row in rows]),
        age=tf.constant([float(row["age"]) for row in rows], tf.float32),
    ).values()
    predicted = [row["predicted_salary"] for row in rows]
    np.testing.assert_allclose(output.numpy()[:, 0], predicted, rtol=1e-5)


def test_a_trained_model_predicts_from_python_too(trained: Company, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    with duckdb.connect(str(trained.path), read_only=True) as connection:
        connection.execute(f"COPY (SELECT role, age FROM employee LIMIT 7) TO '{path}'")
    version = Registry(trained.models).find("pay").path
    result = elasticdl.predict(data=str(path), trained_model=str(version), log_level="ERROR")
    rows = trained.rows("SELECT role, age FROM employee LIMIT 7 PREDICT USING pay;")
    expected = [row["predicted_salary"] for row in rows]
    np.testing.assert_allclose(result.predictions[:, 0], expected, rtol=1e-5)


def test_a_new_table_gets_the_selected_columns_and_the_prediction(company: Company) -> None:
    outcome = company.run("SELECT name, role, age FROM applicant PREDICT offers.salary USING pay;")
    assert "100 rows into offers.salary" in outcome.message
    rows = company.rows("SELECT * FROM offers")
    assert list(rows[0]) == ["name", "role", "age", "salary"]
    assert len(rows) == 100
    with pytest.raises(StatementError, match="offers"):
        company.run("SELECT name, role, age FROM applicant PREDICT offers.salary USING pay;")
    company.run(
        "SELECT name, role, age FROM applicant LIMIT 3 "
        "PREDICT offers.salary WITH predict.overwrite=true USING pay;"
    )
    assert len(company.rows("SELECT * FROM offers")) == 3


def test_rows_that_are_not_selected_keep_null(company: Company) -> None:
    company.run("SELECT role, age FROM testdata WHERE age > 40 PREDICT testdata.pay USING pay;")
    rows = company.rows("SELECT * FROM testdata")
    assert len(rows) == 50
    assert all((row["pay"] is None) == (row["age"] <= 40) for row in rows)


def test_evaluate_gives_the_usual_metrics(company: Company) -> None:
    rows = company.rows("SELECT * FROM employee TO EVALUATE pay LABEL salary;")
    metrics = {row["metric"]: row["value"] for row in rows}
    assert {"mse", "mae", "rmse", "r2"} <= set(metrics)
    predicted = company.rows(f"{SELECTED} PREDICT USING pay;")
    errors = np.array([row["salary"] - row["predicted_salary"] for row in predicted])
    assert metrics["mae"] == pytest.approx(np.abs(errors).mean(), rel=1e-4)
    assert metrics["rmse"] == pytest.approx(np.sqrt((errors**2).mean()), rel=1e-4)
    company.run(
        "SELECT *, salary > 45000 AS very FROM employee EVALUATE wealth LABEL very INTO how;"
    )
    names = {row["metric"] for row in company.rows("SELECT * FROM how")}
    assert {"accuracy", "auc", "precision", "recall", "f1"} <= names


def test_explain_finds_what_the_label_is_made_of(company: Company) -> None:
    outcome = company.run("SELECT * FROM employee TO EXPLAIN pay;")
    assert outcome.rows is not None
    rows = outcome.rows.to_table().to_pylist()
    assert [row["feature"] for row in rows] == ["role", "age"]
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    picture = Path(re.search(r"Picture: (.*)", outcome.message)[1])
    assert picture.read_bytes().startswith(b"\x89PNG")
    company.run("SELECT role, age FROM employee EXPLAIN pay INTO importance;")
    assert len(company.rows("SELECT * FROM importance")) == 2


@pytest.mark.slow
def test_shap_agrees_on_the_order(company: Company) -> None:
    pytest.importorskip("shap")
    rows = company.rows("SELECT * FROM employee LIMIT 12 TO EXPLAIN pay USING SHAP;")
    assert [row["feature"] for row in rows] == ["role", "age"]


def test_a_dry_run_says_what_would_be_done_and_does_nothing(company: Company) -> None:
    rows = company.rows(
        f"EXPLAIN {SELECTED} TRAIN DNNRegressor WITH hidden_units=[7] LABEL salary INTO dry;"
    )
    said = {row["what"]: row["value"] for row in rows}
    assert said["model"] == "regressor.DNN"
    assert "salary" in said["label"] and "regression" in said["label"]
    assert "hidden_units=[7]" in said["model parameters"]
    assert int(said["rows"]) + int(said["validation rows"]) == ROWS
    assert "feature role" in said and "feature age" in said
    assert "dry" not in Registry(company.models).names()


def test_models_are_shown_described_and_dropped(company: Company) -> None:
    rows = company.rows("SHOW MODELS;")
    assert [(row["name"], row["version"]) for row in rows] == [("pay", 1), ("wealth", 1)]
    assert [row["name"] for row in company.rows("SHOW MODELS LIKE 'w%'")] == ["wealth"]
    assert "TO TRAIN DNNRegressor" in company.rows("SHOW TRAIN pay")[0]["statement"]
    said = {row["what"]: row["value"] for row in company.rows("DESCRIBE MODEL wealth")}
    assert said["classes"] == "False, True"
    assert "Dropped wealth@1" in company.run("DROP MODEL wealth").message
    assert "no model" in company.run("DROP MODEL IF EXISTS wealth").message
    with pytest.raises(StatementError, match="no model 'wealth'"):
        company.run("DROP MODEL wealth")


def test_versions_are_added_and_go_on_from_older_ones(company: Company) -> None:
    more = "WITH train.epoch=1, train.batch_size=32 LABEL salary"
    outcome = company.run(
        f"SELECT role, age, salary FROM employee TRAIN DNNRegressor {more} USING pay INTO pay;"
    )
    assert "Trained pay@2" in outcome.message
    assert outcome.result is not None
    first = next(e for e in company.events if e["event"] == "epoch")
    assert first["loss"] < 0.2  # it did not begin anew
    rows = company.rows("SHOW MODELS LIKE 'pay'")
    assert [(row["version"], row["from"]) for row in rows] == [(2, "pay@1"), (1, None)]
    old = company.rows("SELECT role, age FROM employee LIMIT 5 PREDICT USING pay@1;")
    new = company.rows("SELECT role, age FROM employee LIMIT 5 PREDICT USING pay;")
    assert old != new


def test_create_model_refuses_keeps_or_replaces(company: Company) -> None:
    create = (
        "MODEL {} OPTIONS(model_type='LinearRegressor', label='salary', train.epoch=1) "
        "AS SELECT age, salary FROM employee;"
    )
    with pytest.raises(StatementError, match="CREATE OR REPLACE MODEL"):
        company.run("CREATE " + create.format("pay"))
    assert "nothing was done" in company.run("CREATE " + create.format("IF NOT EXISTS pay")).message
    outcome = company.run("CREATE OR REPLACE " + create.format("pay"))
    assert "Trained pay@2" in outcome.message
    assert [row["version"] for row in company.rows("SHOW MODELS LIKE 'pay'")] == [2]


def test_the_same_seed_gives_the_same_model(company: Company) -> None:
    text = "SELECT age, salary FROM employee TRAIN DNNRegressor WITH train.epoch=2, train.seed=7 LABEL salary INTO {};"
    one, other = company.run(text.format("a")), company.run(text.format("b"))
    assert one.result is not None and other.result is not None
    assert one.result.history == other.result.history


def test_validation_may_have_a_select_of_its_own(company: Company) -> None:
    company.run(
        "SELECT age, salary FROM employee WHERE age < 50 TRAIN LinearRegressor "
        "WITH train.epoch=1, validation.select='SELECT age, salary FROM employee WHERE age >= 50' "
        "LABEL salary INTO split;"
    )
    said = {row["what"]: row["value"] for row in company.rows("DESCRIBE MODEL split")}
    counts = company.rows(
        "SELECT count(*) FILTER (age < 50) a, count(*) FILTER (age >= 50) b FROM employee"
    )
    assert (int(said["rows"]), int(said["validation rows"])) == tuple(counts[0].values())


def test_a_table_sorted_by_its_label_trains_as_well(company: Company) -> None:
    outcome = company.run(
        "SELECT (i * 37) % 101 AS x, (i * 37) % 101 > 50 AS y FROM range(20000) t(i) ORDER BY y "
        "TRAIN LinearClassifier WITH train.epoch=2 LABEL y INTO sorted;"
    )
    assert outcome.result is not None
    assert outcome.result.metrics["accuracy"] > 0.95


def test_nulls_and_unseen_values_have_a_meaning(trained: Company) -> None:
    rows = trained.rows(
        "SELECT * FROM (VALUES (NULL, 30), ('engineer', NULL), ('a king', 30)) t(role, age) PREDICT USING pay;"
    )
    assert all(np.isfinite(row["predicted_salary"]) for row in rows)


def test_plain_sql_goes_through(company: Company) -> None:
    assert company.rows("SELECT 1 AS one; SELECT 2 AS two") == [{"two": 2}]
    company.run("CREATE TABLE t (x INT); INSERT INTO t VALUES (1), (2);")
    assert company.rows("FROM t") == [{"x": 1}, {"x": 2}]


def test_files_can_be_selected_from(tmp_path: Path) -> None:
    data = Path(__file__).parents[2] / "model_zoo" / "data"
    company = make_company(tmp_path)
    outcome = company.run(
        f"SELECT * FROM '{data}/iris.csv' TRAIN DNNClassifier WITH train.epoch=30 LABEL variety INTO iris;"
    )
    assert outcome.result is not None
    assert outcome.result.metrics["accuracy"] > 0.8


def test_models_may_be_anywhere(trained: Company) -> None:
    place = "memory://sql-models"
    trained.run(
        "SELECT age, salary FROM employee TRAIN LinearRegressor WITH train.epoch=1 LABEL salary INTO far;",
        models=place,
    )
    assert [row["name"] for row in trained.rows("SHOW MODELS", models=place)] == ["far"]
    rows = trained.rows("SELECT age FROM employee LIMIT 2 PREDICT USING far@1", models=place)
    assert len(rows) == 2
    trained.run("DROP MODEL far", models=place)
    assert trained.rows("SHOW MODELS", models=place) == []
