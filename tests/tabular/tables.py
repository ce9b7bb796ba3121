"""Tables and plans for the tests of this directory."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from elasticdl.tabular.arrays import to_arrays
from elasticdl.tabular.derive import Profile, derive
from elasticdl.tabular.expression import Argument, Call, ColumnGroup, Span
from elasticdl.tabular.plan import FeaturePlan

PLACE = Span(7, 20)


def profile_of(table: pa.Table, rows: int = 100) -> Profile:
    """Taken in batches, as rows stream past."""
    profile = Profile(table.schema)
    for batch in table.to_batches(rows):
        profile.add(batch)
    return profile


def plan_of(table: pa.Table, label: str | None = None, **given: Any) -> FeaturePlan:
    return derive(profile_of(table), label=label, task=given.pop("task", None), **given)


def arrays_of(table: pa.Table, plan: FeaturePlan, *, label: bool = False) -> dict[str, Any]:
    (batch,) = table.combine_chunks().to_batches()
    return to_arrays(batch, [*plan.columns, *(plan.label_columns if label else ())])


def tensors_of(table: pa.Table, plan: FeaturePlan) -> dict[str, Any]:
    import tensorflow as tf

    return {name: tf.constant(values) for name, values in arrays_of(table, plan).items()}


def call(function: str | None, *arguments: Argument) -> Call:
    return Call(function, arguments, PLACE)


def clause(*calls: Call, target: str | None = None) -> Sequence[ColumnGroup]:
    return [ColumnGroup(calls, target)]


def matrix(table: pa.Table, plan: FeaturePlan, rows: pa.Table | None = None) -> np.ndarray:
    """What a model is given of the rows."""
    import keras

    from elasticdl.tabular.layers import wrap

    identity = keras.Sequential([keras.layers.Identity()])
    model = wrap(lambda: identity, plan)
    return np.asarray(model(tensors_of(table if rows is None else rows, plan)))


def people(num_rows: int = 300) -> pa.Table:
    """A bit of everything, with NULLs; the salary can be learnt."""
    random = np.random.default_rng(0)

    def some(values: Sequence[Any]) -> list[Any]:
        return [None if i % 17 == 3 else value for i, value in enumerate(values)]

    age = random.integers(18, 70, num_rows)
    role = random.choice(["dev", "ops", "Büro", "boss"], num_rows)
    days = random.integers(0, 2000, num_rows)
    salary = 30_000 + 400 * age + 15_000 * (role == "boss") + random.normal(0, 500, num_rows)
    return pa.table(
        {
            "age": pa.array(some(age.tolist()), pa.int64()),
            "role": some(role.tolist()),
            "score": random.normal(3, 2, num_rows),
            "serial": pa.array(2**40 + random.integers(0, 9000, num_rows)),
            "full_time": pa.array(some((random.random(num_rows) < 0.5).tolist())),
            "hired": pa.array(some([dt.date(2015, 1, 1) + dt.timedelta(int(d)) for d in days])),
            "seen": pa.array([dt.datetime(2024, 1, 1) + dt.timedelta(hours=int(d)) for d in days]),
            "bonus": pa.array([Decimal(int(d)) / 100 for d in days], pa.decimal128(10, 2)),
            "class": random.integers(0, 5, num_rows),
            'q"uo/te d': random.normal(size=num_rows),
            "größe": random.normal(size=num_rows),
            "email": [f"person{i}@example.com" for i in range(num_rows)],
            "marks": [f"{i % 3},{i % 5}" for i in range(num_rows)],
            "town": [f"town{i % 60}" for i in range(num_rows)],
            "salary": salary,
        }
    )
