"""Columns that are called as people like, not as Python does."""

from __future__ import annotations

from pathlib import Path

import duckdb

from .conftest import Company


def test_keywords_of_python_are_columns_of_a_saved_model(tmp_path: Path) -> None:
    company = Company(tmp_path / "db.duckdb", tmp_path / "models")
    with duckdb.connect(str(company.path)) as connection:
        connection.execute(
            """CREATE TABLE t AS SELECT (i % 7)::DOUBLE AS "class", ['a', 'b'][1 + i % 2] AS "with",
            (i % 5)::DOUBLE AS "x y", (i % 7)::DOUBLE * 3 AS y FROM range(60) t(i)"""
        )
    company.run("SELECT * FROM t TRAIN LinearRegressor WITH train.epoch=1 LABEL y INTO odd")
    saved = company.models / "odd" / "1" / "model" / "saved_model"
    assert saved.is_dir(), company.told

    import tensorflow as tf

    served = tf.saved_model.load(str(saved)).signatures["serving_default"]
    assert sorted(served.structured_input_signature[1]) == ["class_", "with_", "x_y"]
    given = {"class_": [1.0, 2.0], "with_": ["a", "b"], "x_y": [1.0, 2.0]}
    (output,) = served(**{name: tf.constant(values) for name, values in given.items()}).values()
    assert output.shape == (2, 1)
