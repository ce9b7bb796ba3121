"""SHAP's values of columns, for who has the package installed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elasticdl.artifacts.stored_model import find_trained_model
from elasticdl.artifacts.trained_model import SAVED_MODEL
from elasticdl.errors import MissingPackage
from elasticdl.quiet import load_tensorflow
from elasticdl.sql.decode import class_probabilities
from elasticdl.sql.registry import Version
from elasticdl.tabular.arrays import to_arrays
from elasticdl.tabular.plan import FeaturePlan

__all__ = ["shap_importance"]

ROWS, BACKGROUND = 100, 20
"""SHAP asks the model for hundreds of combinations of each row: a few rows take as long as all others."""

Array = NDArray[Any]


def shap_importance(
    version: Version, plan: FeaturePlan, rows: pa.Table, seed: int
) -> Iterator[tuple[str, float, float]]:
    """For each column the mean of the absolute values over some rows, and how much rows differ."""
    try:
        import shap
    except ImportError as error:
        raise MissingPackage(
            "USING SHAP needs the package shap. Install it with: pip install 'elasticdl[explain]'"
        ) from error
    names = [column.name for column in plan.columns]
    table = _few(rows.select(names), seed)
    codes, words = _encoded(table)
    outputs = _model(version, plan)

    def predict(some: Array) -> Array:
        columns = [word.take(pa.array(some[:, i].astype(np.int64))) for i, word in enumerate(words)]
        return outputs(pa.RecordBatch.from_arrays(columns, names=names))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numba's and shap's own
        masker = shap.maskers.Independent(codes, max_samples=BACKGROUND)
        explainer = shap.PermutationExplainer(predict, masker, seed=seed)
        values = np.abs(np.asarray(explainer(codes, silent=True).values))
    values = values.reshape(len(codes), len(names), -1).mean(2)
    for i, name in enumerate(names):
        yield name, float(values[:, i].mean()), float(values[:, i].std())


def _few(rows: pa.Table, seed: int) -> pa.Table:
    if rows.num_rows <= ROWS:
        return rows
    chosen = np.random.default_rng(seed).choice(rows.num_rows, ROWS, replace=False)
    return rows.take(pa.array(np.sort(chosen)))


def _encoded(table: pa.Table) -> tuple[Array, list[pa.Array]]:
    """Every column as numbers of its values, which SHAP can exchange, and the values."""
    words, codes = [], []
    for column in table.columns:
        encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
        words.append(encoded.dictionary)
        codes.append(encoded.indices.to_numpy(zero_copy_only=False))
    return np.stack(codes, 1).astype(np.float64), words


def _model(version: Version, plan: FeaturePlan) -> Callable[[pa.RecordBatch], Array]:
    """What the model says of raw columns: numbers, or probabilities of classes."""
    load_tensorflow()
    import tensorflow as tf

    stored = find_trained_model(str(version.path)).fetch(SAVED_MODEL)
    loaded = tf.saved_model.load(str(stored / SAVED_MODEL))
    signature = loaded.signatures["serving_default"]
    label = plan.label
    assert label is not None

    def call(batch: pa.RecordBatch) -> Array:
        arrays = to_arrays(batch, plan.columns)
        given = {name: tf.constant(array) for name, array in arrays.items()}
        (output,) = signature(**given).values()
        found = output.numpy()
        return class_probabilities(found, label) if label.classes else found

    return call
