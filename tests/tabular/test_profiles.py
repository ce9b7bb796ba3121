"""Statistics of rows that stream past: equal to pandas' and numpy's over all of them at once."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tables import profile_of

from elasticdl.tabular.distinct import MAX_DISTINCT
from elasticdl.tabular.profile import Profile


def test_moments_are_those_of_all_rows_whatever_the_batches() -> None:
    values = np.random.default_rng(1).normal(1e6, 3, 5000)
    frame = pd.Series(values)
    for rows in (7, 999, 5000):
        moments = profile_of(pa.table({"x": values}), rows).columns["x"].moments
        assert moments.mean == pytest.approx(frame.mean(), rel=1e-12)
        assert moments.variance == pytest.approx(frame.var(ddof=0), rel=1e-9)
        assert (moments.min, moments.max) == (frame.min(), frame.max())


def test_nulls_nans_and_infinities_are_counted_and_left_out() -> None:
    column = profile_of(
        pa.table({"x": pa.array([1.0, None, float("nan"), float("inf"), 3.0])})
    ).columns["x"]
    assert (column.nulls, column.odd, column.moments.mean, column.moments.count) == (1, 2, 2.0, 2)


def test_moments_equal_those_that_keras_adapts(tensorflow: None) -> None:
    import keras

    values = np.random.default_rng(2).normal(50, 7, 1000).astype(np.float32)
    layer = keras.layers.Normalization(axis=None)
    layer.adapt(values)
    moments = profile_of(pa.table({"x": values})).columns["x"].moments
    assert moments.mean == pytest.approx(float(np.squeeze(layer.mean)), rel=1e-5)
    assert moments.variance == pytest.approx(float(np.squeeze(layer.variance)), rel=1e-5)


def test_few_values_are_counted_exactly() -> None:
    values = ["a", "b", None, "a", ""] * 100
    counts = profile_of(pa.table({"x": values}), 3).columns["x"].distinct.counts
    assert counts == pd.Series(values).value_counts().to_dict()


def test_the_number_of_many_values_is_estimated() -> None:
    distinct = (
        profile_of(pa.table({"x": [f"u{i % 50_000}" for i in range(100_000)]}), 9_999)
        .columns["x"]
        .distinct
    )
    assert distinct.counts is None
    assert distinct.number() == pytest.approx(50_000, rel=0.15)


def test_long_texts_do_not_fill_the_memory() -> None:
    profile = Profile(pa.schema({"x": pa.string()}))
    for i in range(100):
        profile.add(pa.record_batch({"x": [f"{i}-{j}" + "x" * 100_000 for j in range(5)]}))
    assert profile.columns["x"].distinct.counts is None
    assert profile.num_rows == 500


def test_counts_end_where_there_are_too_many() -> None:
    column = profile_of(pa.table({"x": np.arange(MAX_DISTINCT + 1)}), 1000).columns["x"]
    assert column.distinct.counts is None
    assert (
        profile_of(pa.table({"x": np.arange(MAX_DISTINCT)})).columns["x"].distinct.number()
        == MAX_DISTINCT
    )


def test_the_sample_stands_for_all_rows() -> None:
    values = np.arange(200_000, dtype=np.float64)
    sample = profile_of(pa.table({"x": values}), 8192).columns["x"].sample.values
    assert len(sample) == 10_000
    assert np.quantile(sample, [0.1, 0.5, 0.9]) == pytest.approx(
        [20_000, 100_000, 180_000], rel=0.1
    )


def test_small_tables_are_sampled_whole() -> None:
    column = profile_of(pa.table({"x": [3, None, 1], "s": ["a", None, "b"]}), 1)
    assert column.columns["x"].sample.values == [3, 1]
    assert column.columns["s"].sample.values == ["a", "b"]


def test_times_are_seconds() -> None:
    day = dt.date(1970, 1, 3)
    moments = profile_of(pa.table({"d": [day, None]})).columns["d"].moments
    assert (moments.mean, moments.count) == (2 * 86400, 1)


def test_types_that_no_model_takes_do_no_harm() -> None:
    profile = profile_of(pa.table({"x": [[1], [2, 3], None], "n": pa.nulls(3)}))
    assert profile.names == ["x", "n"]
    assert profile.columns["x"].nulls == 1
