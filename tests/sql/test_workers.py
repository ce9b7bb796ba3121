"""TRAIN with several workers: what one process trains, only by more of them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from elasticdl.errors import StatementError
from elasticdl.sql.registry import Registry

from .conftest import Company

TRAIN = """
SELECT role, age, salary FROM employee TO TRAIN DNNRegressor
WITH model.hidden_units=[8], train.epoch=2, train.seed=3{more} LABEL salary INTO {name};
"""


@pytest.mark.slow
def test_workers_train_what_one_process_trains(company: Company) -> None:
    pytest.importorskip("ray")
    company.run(TRAIN.format(more="", name="alone"))
    company.events.clear()
    company.run(TRAIN.format(more=", train.num_workers=2", name="shared"))
    alone, shared = (
        [
            row["predicted_salary"]
            for row in company.rows(f"SELECT * FROM employee PREDICT USING {name};")
        ]
        for name in ("alone", "shared")
    )
    np.testing.assert_allclose(shared, alone, rtol=1e-4)
    kinds = [event["event"] for event in company.events]
    assert kinds.count("worker_joined") == 2
    assert kinds.count("epoch") == 2
    version = Registry(company.models).find("shared")
    job = json.loads((version.path / "job.json").read_text())
    assert (job["num_workers"], job["global_batch_size"]) == ("2", 64)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("num_workers='4:2'", "Invalid train.num_workers '4:2': the minimum 4 is above"),
        ("num_workers=0", "Invalid train.num_workers 0: the fewest workers are 1"),
        ("worker_timeout=0", "Invalid train.worker_timeout 0: the smallest"),
        ("batch_size=8, train.global_batch_size=8", "are both given"),
    ],
)
def test_what_is_wrong_with_workers_is_said_at_its_place(
    company: Company, more: str, words: str
) -> None:
    with pytest.raises(StatementError, match=words) as raised:
        company.run(TRAIN.format(more=f", train.{more}", name="never"))
    assert "line 3" in str(raised.value)


def test_one_worker_is_this_process(company: Company) -> None:
    company.run(TRAIN.format(more=", train.num_workers=1, train.max_steps=1", name="single"))
    job = json.loads((Registry(company.models).find("single").path / "job.json").read_text())
    assert "distribution_strategy" not in job
    assert not any("effect" in line for line in company.told)
