"""A small company in DuckDB, and models that were trained on it once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pytest

from elasticdl.sql.outcome import Outcome
from elasticdl.sql.session import Session

ROWS = 240
CREATE = f"""
CREATE TABLE employee AS SELECT
    'n' || i AS name,
    ['engineer', 'sales', 'chief'][1 + i % 3] AS role,
    20 + (i * 7) % 40 AS age,
    (30000 + (i % 3) * 20000 + ((i * 7) % 40) * 100)::DOUBLE AS salary
FROM range({ROWS}) t(i);
CREATE TABLE applicant AS SELECT name, role, age, age > 40 AS senior FROM employee LIMIT 100;
CREATE TABLE testdata AS SELECT * FROM employee LIMIT 50;
ALTER TABLE testdata DROP salary;
"""


@dataclass
class Company:
    """A database, a registry, and who runs statements over both."""

    path: Path
    models: Path
    told: list[str] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)

    def session(self, **options: Any) -> Session:
        given = {
            "models": str(self.models),
            "tell": self.told.append,
            "on_event": lambda event: self.events.append(dict(event)),
            "seed": 1,
        }
        return Session(f"duckdb:///{self.path}", **{**given, **options})

    def run(self, text: str, **options: Any) -> Outcome:
        """The last statement's outcome; its rows are taken already."""
        last: Outcome | None = None
        with self.session(**options) as session:
            for outcome in session.run(text):
                if outcome.rows is not None:
                    rows = type(outcome.rows).of(outcome.rows.to_table())
                    outcome = Outcome(
                        outcome.statement, rows, outcome.message, outcome.result, outcome.seconds
                    )
                last = outcome
        assert last is not None
        return last

    def rows(self, text: str, **options: Any) -> list[dict[str, Any]]:
        outcome = self.run(text, **options)
        assert outcome.rows is not None, outcome.message
        found: list[dict[str, Any]] = outcome.rows.to_table().to_pylist()
        return found


def make_company(directory: Path) -> Company:
    company = Company(directory / "company.duckdb", directory / "models")
    with duckdb.connect(str(company.path)) as connection:
        connection.execute(CREATE)
    return company


TRAINED = """
SELECT role, age, salary FROM employee
TO TRAIN DNNRegressor WITH model.hidden_units=[16], train.epoch=40, train.batch_size=32
LABEL salary INTO pay;
SELECT role, age, salary > 45000 AS rich FROM employee
TO TRAIN LinearClassifier WITH train.epoch=20, train.batch_size=32 LABEL rich INTO wealth;
"""


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Company:
    """With the models pay (a number) and wealth (true or false). Not to be changed."""
    company = make_company(tmp_path_factory.mktemp("company"))
    company.run(TRAINED)
    return company


@pytest.fixture
def company(trained: Company, tmp_path: Path) -> Iterator[Company]:
    """A copy of it to do anything with: a database of its own, and the same models until it trains."""
    import shutil

    shutil.copy(trained.path, tmp_path / "company.duckdb")
    shutil.copytree(trained.models, tmp_path / "models")
    yield Company(tmp_path / "company.duckdb", tmp_path / "models")


Run = Callable[..., Any]
