"""What is wrong is told at its place, and nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from elasticdl.errors import StatementError, Stopped, UserError
from elasticdl.sql.registry import Registry

from .conftest import Company

TRAIN = "SELECT role, age, salary FROM employee TRAIN {} LABEL {} INTO {};"
GOOD = ("DNNRegressor", "salary", "m")


# ruff: noqa: E501
@pytest.mark.parametrize(
    ("text", "says", "marked"),
    [
        (TRAIN.format("DNNRegresor", "salary", "m"), "Did you mean 'DNNRegressor'?", "DNNRegresor"),
        (TRAIN.format("DNNRegressor", "salry", "m"), "Did you mean 'salary'?", "salry"),
        (TRAIN.format("DNNRegressor", "salary", "'../m'"), "Invalid model name '../m'", "'../m'"),
        (TRAIN.format("DNNRegressor WITH hiden_units=[1]", "salary", "m"), "Did you mean 'hidden_units'?", "hiden_units"),
        (TRAIN.format("DNNRegressor WITH train.epohc=1", "salary", "m"), "Did you mean 'train.epoch'?", "train.epohc"),
        (TRAIN.format("DNNRegressor WITH train.epoch='two'", "salary", "m"), "give a whole number", "'two'"),
        (TRAIN.format("DNNRegressor WITH train.epoch=0", "salary", "m"), "from 1 on", "0"),
        (TRAIN.format("DNNRegressor COLUMN DENS(age)", "salary", "m"), "Did you mean 'DENSE'?", "DENS"),
        (TRAIN.format("DNNRegressor COLUMN DENSE(aeg)", "salary", "m"), "Did you mean 'age'?", "DENSE(aeg)"),
        ("SELECT 1 AS x, age FROM employee TRAIN DNNRegressor LABEL x INTO m;", "same value in all rows", "x"),
        ("SELECT * FROM employee WHERE age > 999 TRAIN DNNRegressor LABEL salary INTO m;", "no rows", "SELECT"),
        ("SELECT role FROM employee PREDICT USING paay;", "Did you mean 'pay'?", "paay"),
        ("SELECT role FROM employee PREDICT USING pay@9;", "Known: pay@1", "pay@9"),
        ("SELECT name FROM employee PREDICT USING pay;", "'role', 'age'", "SELECT"),
        ("SELECT role, age FROM employe PREDICT USING pay;", "employe", "employe"),
        ("SELECT role, aeg FROM employee PREDICT USING pay;", "aeg", "aeg"),
        ("SELECT role, age FROM employee EVALUATE pay;", "salary", "SELECT"),
        ("SELECT * FROM employee EVALUATE pay LABEL slary;", "Did you mean 'salary'?", "slary"),
        ("SELECT * FROM employee EXPLAIN pay USING SHAPP;", "Did you mean 'SHAP'?", "SHAPP"),
        (TRAIN.format("DNNRegressor WITH optimizer=nope", "salary", "m"), "nope", "nope"),
        (TRAIN.format("DNNRegressor WITH loss=nope", "salary", "m"), "nope", "nope"),
        (TRAIN.format("DNNRegressor WITH train.seed=-5", "salary", "m"), "from 0 on", "-5"),
        (TRAIN.format("DNNRegressor WITH validation.split=0.99", "salary", "m"), "to 0.9", "0.99"),
        (TRAIN.format("DNNRegressor WITH validation.throttle_secs=-1", "salary", "m"), "validation.throttle_secs", "validation.throttle_secs"),
        (TRAIN.format("DNNRegressor WITH validation.select='DROP TABLE employee'", "salary", "m"), "must be a SELECT", "'DROP TABLE employee'"),
        (TRAIN.format("DNNRegressor WITH validation.select='SELECT 1; SELECT 2'", "salary", "m"), "2 statements", "'SELECT 1; SELECT 2'"),
        (TRAIN.format("DNNRegressor WITH validation.select='FROM employee WHERE age > 999'", "salary", "m"), "no rows", "'FROM"),
        (TRAIN.format("DNNRegressor USING pay", "age", "m"), "trained to predict salary", "age"),
        (TRAIN.format("DNNRegressor WITH hidden_units=[3] USING pay", "salary", "m"), "was trained with hidden_units=[16]", "hidden_units"),
        (TRAIN.format("DNNRegressor COLUMN DENSE(age) USING pay", "salary", "m"), "has its features already", "DENSE(age)"),
        (TRAIN.format("LinearRegressor USING pay", "salary", "m"), "cannot go on as", "LinearRegressor"),
        ("SELECT salary, age FROM employee TRAIN DNNRegressor USING pay INTO m;", "'role'", "SELECT"),
        ("SELECT *, [1, 2] AS pair FROM employee TRAIN DNNRegressor LABEL salary INTO m;", "pair", "pair"),
        ("SELECT age, role, age + 1 AS age FROM employee PREDICT USING pay;", "more than once", "age"),
        ("SELECT age, role, 1 AS offer FROM employee PREDICT fresh.offer USING pay;", "column 'offer' already", "fresh.offer"),
        ("SELECT * FROM testdata PREDICT testdata.age WITH predict.overwrite=true USING pay;", "predicts from", "testdata.age"),
        ("SELECT *, NULL::DOUBLE AS salary2 FROM employee EVALUATE pay LABEL salary2;", "IS NOT NULL", "SELECT"),
        ("SELECT * REPLACE ('x' AS role), 'no' AS rich FROM employee EVALUATE wealth LABEL rich;", "rich", "rich"),
        ("SELECT * FROM employee EXPLAIN pay WITH explain.plot='p.txt';", "does not end in .png", "'p.txt'"),
        ("SELECT * FROM employee EVALUATE pay INTO testdata;", "evaluate.overwrite=true", "testdata"),
        ("SELECT 1; SELECT * FROM employe;", "employe", "employe"),
        ("SELECT * FROM employee PREDICT USING pay WITH predict.probabilties=true;", "Did you mean 'predict.probabilities'?", "predict.probabilties"),
    ],
)  # fmt: skip
def test_the_place_is_shown(trained: Company, text: str, says: str, marked: str) -> None:
    with pytest.raises(StatementError) as raised:
        trained.run(text)
    shown = str(raised.value)
    assert says in shown
    *_, line, carets = shown.splitlines()
    begin = carets.index("^")
    assert line[begin : begin + len(marked)] == marked, shown
    assert "m" not in Registry(trained.models).names()


def test_the_line_and_column_are_those_of_the_whole_text(trained: Company) -> None:
    with pytest.raises(StatementError, match=r"line 3, column 41"):
        trained.run(
            "SELECT 1;\n-- a remark; with a semicolon\n  SELECT 2 TO TRAIN x LABEL nothing INTO;"
        )


def test_a_text_that_cannot_be_read_runs_nothing(company: Company) -> None:
    with pytest.raises(StatementError):
        company.run("DROP MODEL pay; SELECT * FROM employee TRAIN DNNRegressor LABEL salary;")
    assert "pay" in Registry(company.models).names()


def test_a_type_that_changed_since_training_is_told(trained: Company) -> None:
    with pytest.raises(UserError, match="age"):
        trained.run("SELECT role, ['a', 'b'] AS age FROM employee PREDICT USING pay;")


def test_labels_that_are_missing_are_told_with_the_cure(company: Company) -> None:
    company.run("UPDATE employee SET salary = NULL WHERE age > 50")
    with pytest.raises(StatementError, match=r"IS NOT NULL"):
        company.run(TRAIN.format(*GOOD))


@pytest.mark.parametrize(
    "name", ['x"; DROP TABLE employee; --', "x'; DROP TABLE employee; --", "tä ble", "select"]
)
def test_names_are_quoted_and_never_run(company: Company, name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    company.run(f"SELECT role, age FROM applicant PREDICT {quoted}.{quoted} USING pay;")
    assert len(company.rows(f"SELECT {quoted} FROM {quoted}")) == 100
    assert len(company.rows("SELECT * FROM employee")) == 240


def test_a_picture_replaces_pictures_only(company: Company) -> None:
    before = company.path.read_bytes()
    odd = company.path.with_suffix(".png")
    odd.write_bytes(b"precious")
    with pytest.raises(StatementError, match="exists and is no picture"):
        company.run(f"SELECT * FROM employee EXPLAIN pay WITH explain.plot='{odd}';")
    assert odd.read_bytes() == b"precious"
    assert company.path.read_bytes() == before


def test_labels_that_are_no_class_are_told(company: Company) -> None:
    company.run(
        "SELECT age, salary, role FROM employee TRAIN DNNClassifier WITH train.epoch=1 LABEL role INTO roles;"
    )
    company.run("UPDATE employee SET role = 'king' WHERE age > 55")
    with pytest.raises(
        StatementError, match=r"'king' in \d+ rows, which is no class of the model \(chief"
    ):
        company.run("SELECT * FROM employee EVALUATE roles;")
    with pytest.raises(StatementError, match="'king'"):
        company.run(
            "SELECT * FROM employee TRAIN DNNClassifier WITH train.epoch=1 USING roles INTO roles;"
        )


def test_a_dry_run_changes_nothing_whatever_it_says(company: Company) -> None:
    text = TRAIN.format("DNNRegressor WITH validation.select='DROP TABLE testdata'", "salary", "m")
    with pytest.raises(StatementError, match="must be a SELECT"):
        company.run(f"EXPLAIN {text}")
    assert len(company.rows("FROM testdata")) == 50


def test_values_of_labels_are_never_run(company: Company) -> None:
    company.run("UPDATE employee SET role = 'x''; DROP TABLE employee; --' WHERE role = 'sales'")
    company.run(
        "SELECT age, salary, role FROM employee TRAIN DNNClassifier WITH train.epoch=1 LABEL role INTO roles;"
    )
    company.run("SELECT age, salary FROM employee PREDICT out.role USING roles;")
    company.run("SELECT age, salary FROM employee PREDICT employee.guess USING roles;")
    assert len(company.rows("SELECT * FROM employee")) == 240


def test_a_database_that_is_gone_after_the_select_does_not_matter(company: Company) -> None:
    """The rows are here by then."""
    seen = []

    def remove(event: dict) -> None:
        if event["event"] == "epoch" and not seen:
            seen.append(event)
            company.path.unlink()

    outcome = company.run(
        TRAIN.format("DNNRegressor WITH train.epoch=3", "salary", "m"), on_event=remove
    )
    assert "Trained m@1" in outcome.message
    assert seen


def test_a_training_that_is_killed_leaves_no_version(company: Company) -> None:
    script = (
        "import sys\n"
        "from elasticdl.sql.session import Session\n"
        "def tell(event):\n"
        "    if event['event'] == 'epoch': print('epoch', flush=True)\n"
        f"with Session('duckdb:///{company.path}', models={str(company.models)!r}, on_event=tell) as session:\n"
        f"    list(session.run({TRAIN.format('DNNRegressor WITH train.epoch=100000', 'salary', 'pay')!r}))\n"
    )
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"epoch\n"
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    registry = Registry(company.models)
    assert registry.find("pay").number == 1
    left = Path(str(company.models), "pay", "2")
    assert left.exists()
    outcome = company.run(TRAIN.format("LinearRegressor WITH train.epoch=1", "salary", "pay"))
    assert "Trained pay@2" in outcome.message


def test_a_training_that_is_cancelled_leaves_no_version(company: Company) -> None:
    with pytest.raises(Stopped, match="stopped"):
        company.run(
            TRAIN.format("DNNRegressor WITH train.epoch=100000", "salary", "never"),
            is_cancelled=lambda: any(e["event"] == "epoch" for e in company.events),
        )
    assert "never" not in Registry(company.models).names()
    assert not Path(str(company.models), "never").exists()
