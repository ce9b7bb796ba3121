"""Numbers and times as columns of a matrix: normalised, NULL as the mean, with an indicator where wanted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from elasticdl.tabular.plan import Feature
from elasticdl.tabular.types import MISSING

__all__ = ["calendar", "flag", "is_missing", "numbers", "vector"]

INFINITE = 10.0
"""So many deviations from the mean stands for an infinity."""
DAY = 86400


def numbers(features: Sequence[Feature], inputs: Mapping[str, Any], name: str) -> list[Any]:
    """All numbers of a matrix at once: a layer each would cost more than the model."""
    import keras
    from keras import ops

    single = [f for f in features if inputs[f.columns[0]].dtype == "float32"]
    exact = [f for f in features if inputs[f.columns[0]].dtype != "float32"]
    pieces = []
    if single:
        stacked = ops.stack([inputs[f.columns[0]] for f in single], axis=-1)
        means = [f.params["mean"] for f in single]
        variances = [f.params["variance"] for f in single]
        layer = keras.layers.Normalization(mean=means, variance=variances, name=name)
        pieces.append(_finite(layer(stacked)))
    if exact:
        columns = [_normalised(f, inputs[f.columns[0]]) for f in exact]
        pieces.append(_finite(ops.stack(columns, axis=-1)))
    if with_nulls := [f for f in features if f.params["missing"]]:
        masks = [is_missing(inputs[f.columns[0]]) for f in with_nulls]
        pieces.append(ops.cast(ops.stack(masks, axis=-1), "float32"))
    return pieces


def _normalised(feature: Feature, column: Any) -> Any:
    """Large numbers: the mean is taken off before anything is rounded to a float32."""
    from keras import ops

    mean, scale = feature.params["mean"], 1 / math.sqrt(feature.params["variance"])
    centred = ops.subtract(_wide(column), float(mean))
    scaled = ops.cast(ops.multiply(centred, scale), "float32")
    return ops.where(is_missing(column), 0.0, scaled) if column.dtype == "int64" else scaled


def _wide(column: Any) -> Any:
    from keras import ops

    return column if column.dtype == "float64" else ops.cast(column, "float64")


def _finite(values: Any) -> Any:
    from keras import ops

    return ops.nan_to_num(values, nan=0.0, posinf=INFINITE, neginf=-INFINITE)


def is_missing(column: Any) -> Any:
    """Where a column is NULL."""
    from keras import ops

    return ops.equal(column, MISSING) if column.dtype == "int64" else ops.isnan(column)


def flag(feature: Feature, inputs: Mapping[str, Any]) -> list[Any]:
    """0 or 1."""
    from keras import ops

    column = inputs[feature.columns[0]]
    missing = is_missing(column)
    value = ops.where(missing, float(feature.params["mean"]), ops.cast(column, "float32"))
    pieces = [_upright(value)]
    return [*pieces, _upright(missing)] if feature.params["missing"] else pieces


def vector(feature: Feature, inputs: Mapping[str, Any], name: str) -> list[Any]:
    """A text of numbers."""
    import keras

    from elasticdl.tabular.text_layers import SplitNumbers

    params = feature.params
    split = SplitNumbers(params["size"], params["separator"], name=f"{name}_split")
    normalise = keras.layers.Normalization(
        mean=params["mean"], variance=params["variance"], name=f"{name}_normalise"
    )
    return [_finite(normalise(split(inputs[feature.columns[0]])))]


def calendar(feature: Feature, inputs: Mapping[str, Any]) -> list[Any]:
    """A time, normalised, and where it is in the week, the year and the day."""
    from keras import ops

    column = inputs[feature.columns[0]]
    missing = is_missing(column)
    # What has no time is on no day of the week: its places are all 0.
    there = ops.subtract(1.0, _upright(missing))
    days = ops.floor_divide(column, DAY)
    week_day = ops.one_hot(
        ops.mod(ops.add(days, 3), 7), 7
    )  # 1970 began on a Thursday; Monday is the first
    parts = [week_day, _around(_month(days), 12)]
    if feature.params["hour"]:
        parts.append(_around(ops.floor_divide(ops.mod(column, DAY), 3600), 24))
    value = _upright(_normalised(feature, column))
    placed = ops.multiply(ops.concatenate(parts, axis=-1), there)
    return [_finite(value), placed, *([_upright(missing)] if feature.params["missing"] else [])]


def _month(days: Any) -> Any:
    """The month, 0 to 11, of days since 1970, in whole numbers.

    The calendar repeats every 400 years (146,097 days). Counted from a 1st of March, so that the leap day is a
    year's last one, months begin every 153 / 5 days.
    """
    from keras import ops

    in_era = ops.mod(ops.add(days, 719468), 146097)  # days from 0000-03-01 to 1970-01-01
    leaps = ops.subtract(
        ops.add(ops.floor_divide(in_era, 1460), ops.floor_divide(in_era, 146096)),
        ops.floor_divide(in_era, 36524),
    )
    year = ops.floor_divide(ops.subtract(in_era, leaps), 365)
    before = ops.subtract(
        ops.add(ops.multiply(year, 365), ops.floor_divide(year, 4)), ops.floor_divide(year, 100)
    )
    in_year = ops.subtract(in_era, before)
    from_march = ops.floor_divide(ops.add(ops.multiply(in_year, 5), 2), 153)
    return ops.mod(ops.add(from_march, 2), 12)


def _around(value: Any, period: int) -> Any:
    """A place on a circle: December is next to January."""
    from keras import ops

    angle = ops.multiply(ops.cast(value, "float32"), 2 * math.pi / period)
    return ops.stack([ops.sin(angle), ops.cos(angle)], axis=-1)


def _upright(values: Any) -> Any:
    from keras import ops

    return ops.expand_dims(ops.cast(values, "float32"), -1)
