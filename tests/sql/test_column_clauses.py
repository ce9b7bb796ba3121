"""COLUMN clauses that do not fit the model or the rows: refused where they stand."""

from __future__ import annotations

import pytest

from elasticdl.errors import StatementError

from .conftest import Company

SELECTED = "SELECT role, age, salary FROM employee"


def underlined(error: StatementError) -> str:
    lines = str(error).splitlines()
    (place,) = [i for i, line in enumerate(lines) if line.strip(" ^") == "" and "^" in line]
    begin = lines[place].index("^")
    return lines[place - 1][begin : len(lines[place].rstrip())]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("DNNRegressor", "It has one input: leave FOR out"),
        ("WideAndDeepRegressor", "no input 'deep'"),
    ],
)
def test_an_input_that_the_model_lacks_is_underlined(
    trained: Company, model: str, message: str
) -> None:
    text = f"{SELECTED} TRAIN {model} COLUMN DENSE(age) FOR deep LABEL salary INTO nothing"
    with pytest.raises(StatementError, match=message) as raised:
        trained.run(text)
    assert underlined(raised.value) == "deep"


def test_texts_that_are_no_ids_are_refused_at_the_call(trained: Company) -> None:
    text = (
        f"{SELECTED} TRAIN DNNRegressor COLUMN SEQ_CATEGORY_ID(role, 11) LABEL salary INTO nothing"
    )
    with pytest.raises(StatementError, match="takes whole numbers with ','") as raised:
        trained.run(text)
    assert underlined(raised.value) == "SEQ_CATEGORY_ID(role, 11)"
