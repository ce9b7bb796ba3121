"""Splitting and parsing SQL texts, against sqlglot's own parser on the plain SELECTs inside of them."""

from __future__ import annotations

import time
from collections.abc import Callable

import report
import sqlglot

from elasticdl.sql.parse import parse

COUNT, ROUNDS = 1000, 5
GOAL_S = 1.0
SELECT = (
    "SELECT e.name, e.role, d.city AS place, e.salary -- the last is the label; it's in euro\n"
    "FROM employee e JOIN department d USING (id)\n"
    "WHERE e.age > {} AND d.city IN ('Paris', 'Rome; Italy') ORDER BY e.name"
)
CLAUSE = """
TRAIN regressor.DNN
WITH hidden_units=[10, 100, 20, 5], learning_rate=0.01, validation.select="SELECT * FROM v WHERE a = 'x;'"
COLUMN DENSE(age), EMBEDDING(CATEGORY_ID(role, 10), 8) FOR dnn LABEL salary INTO model_{}"""


def fastest(work: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def main() -> None:
    selects = [SELECT.format(i) for i in range(COUNT)]
    plain = ";\n".join(selects)
    ours = ";\n".join(select + CLAUSE.format(i) for i, select in enumerate(selects))
    assert len(parse(plain)) == len(parse(ours)) == COUNT
    peer = fastest(lambda: sqlglot.parse(plain, dialect="duckdb"))
    for name, text, goal in (
        ("1,000 TRAIN statements", ours, GOAL_S),
        ("1,000 SELECTs", plain, None),
    ):
        seconds = fastest(lambda text=text: parse(text))
        ratio = goal and goal / peer
        report.add(
            f"SQL, {name}: sqlglot's parser", seconds, peer, "s", ratio, more_is_better=False
        )
    report.finish()


if __name__ == "__main__":
    main()
