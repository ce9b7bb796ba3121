"""Saved models take raw columns in a fresh process, which knows nothing of the plan."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tables import arrays_of, call, clause, people, plan_of, tensors_of

from elasticdl.tabular.layers import wrap
from elasticdl.tabular.plan import FeaturePlan

pytestmark = [
    pytest.mark.usefixtures("tensorflow"),
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),  # of Keras
]

FRESH = """
import json, sys
import tensorflow as tf
import keras

def look(name):
    arrays = json.load(open(f"{name}.json"))
    columns = {
        column: tf.constant([float("nan") if v is None else v for v in one["values"]], one["dtype"])
        for column, one in arrays.items()
    }
    served = tf.saved_model.load(f"{name}_saved")
    return {
        "keras": keras.models.load_model(f"{name}.keras")(columns).numpy().tolist(),
        "saved_model": served.serve(columns).numpy().tolist(),
        "signature": sorted(served.signatures["serving_default"].structured_input_signature[1]),
    }

found = {"people": look("people")}
assert not any(name.startswith("elasticdl") for name in sys.modules)
import elasticdl.tabular.text_layers
found["texts"] = look("texts")
json.dump(found, open("found.json", "w"))
"""


def inner() -> Any:
    import keras

    return keras.Sequential([keras.layers.Dense(8, "relu"), keras.layers.Dense(1)], name="inner")


def save(name: str, rows: pa.Table, plan: FeaturePlan, more: pa.Table, directory: Path) -> Any:
    """Fits a model, saves it, and gives what it predicts for more rows."""
    model = wrap(inner, plan)
    model.compile("adam", "mse")
    labels = np.arange(rows.num_rows, dtype=np.float32)[:, None]
    model.fit(tensors_of(rows, plan), labels, epochs=1, verbose=0)
    model.save(directory / f"{name}.keras")
    model.export(directory / f"{name}_saved", verbose=False)
    dtypes = {column.name: column.dtype for column in plan.columns}
    arrays = {
        column: {"dtype": dtypes[column], "values": [_json(v) for v in values.tolist()]}
        for column, values in arrays_of(more, plan).items()
    }
    (directory / f"{name}.json").write_text(json.dumps(arrays))
    return model(tensors_of(more, plan)).numpy()


def _json(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else (None if value != value else value)


@pytest.fixture(scope="module")
def predictions(
    table: pa.Table, plan: FeaturePlan, tensorflow: None, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Any, Any]]:
    """By model: what it predicted before it was saved, and what a fresh process found."""
    directory = tmp_path_factory.mktemp("saved")
    odd = people(300).slice(0, 20)
    odd = odd.set_column(1, "role", pa.array(["never seen", "", None, "Büro"] * 5))
    odd = odd.set_column(9, 'q"uo/te d', pa.array([None, 1e30, -1.0, 0.0] * 5))
    more = pa.concat_tables([table.slice(0, 50), odd.cast(table.schema)])
    texts = pa.table({"v": ["1,2", "3,4", None], "s": ["0,1", "", "2"], "x y": [1, 2, 2**40]})
    groups = clause(
        call("DENSE", "v", 2),
        call("EMBEDDING", call("SEQ_CATEGORY_ID", "s", 3), 2),
        call("BUCKET", "x y", (2, 2**39)),
        call("DENSE", "x y"),
    )
    expected = {
        "people": save("people", table, plan, more, directory),
        "texts": save("texts", texts, plan_of(texts, groups=groups), texts, directory),
    }
    (directory / "fresh.py").write_text(FRESH)
    command = [sys.executable, "-W", "ignore", "fresh.py"]
    run = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
    found = json.loads((directory / "found.json").read_text())
    return {name: (expected[name], found[name]) for name in expected}


@pytest.mark.parametrize("form", ["keras", "saved_model"])
def test_saved_models_predict_the_same_from_raw_columns(
    predictions: dict[str, tuple[Any, Any]], form: str
) -> None:
    expected, found = predictions["people"]
    np.testing.assert_allclose(found[form], expected, rtol=1e-5, atol=1e-5)
    assert np.isfinite(expected).all()


@pytest.mark.parametrize("form", ["keras", "saved_model"])
def test_models_with_texts_of_values_load_with_their_layers(
    predictions: dict[str, tuple[Any, Any]], form: str
) -> None:
    expected, found = predictions["texts"]
    np.testing.assert_allclose(found[form], expected, rtol=1e-5, atol=1e-5)


def test_signatures_have_names_that_tensorflow_allows(
    predictions: dict[str, tuple[Any, Any]],
) -> None:
    names = set(predictions["people"][1]["signature"])
    assert {"age", "column_class", "column_q_uo_te_d", "column_gr_e"} <= names


def test_inputs_are_named_as_their_columns_or_nearly(plan: FeaturePlan) -> None:
    model = wrap(inner, plan)
    names = {column: tensor.name for column, tensor in model.input.items()}
    assert list(names) == [column.name for column in plan.columns]
    assert names["age"] == "age"
    assert names["class"] == "column_class"
    assert len(set(names.values())) == len(names)


def test_columns_whose_safe_names_meet_are_told_apart() -> None:
    rows = pa.table({"a b": [1, 2], "a-b": [2, 1], "column_a_b": [1, 3], "1": [1, 4], "_": [5, 6]})
    plan = plan_of(rows)
    names = [tensor.name for tensor in wrap(inner, plan).input.values()]
    assert names == ["column_a_b_2", "column_a_b_3", "column_a_b", "column_1", "column"]
