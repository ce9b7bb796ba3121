"""What the layers make of raw columns: compared with numpy, pandas, and Keras' own layers and FeatureSpace."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tables import call, clause, matrix, plan_of, tensors_of

from elasticdl.errors import ContractError, DataError
from elasticdl.tabular.expression import ColumnGroup
from elasticdl.tabular.layers import wrap
from elasticdl.tabular.plan import FeaturePlan

pytestmark = pytest.mark.usefixtures("keras")


def rows_of(**columns: Any) -> pa.Table:
    return pa.table(columns)


def of_clause(rows: pa.Table, *calls: Any, given: pa.Table | None = None) -> np.ndarray:
    return matrix(rows, plan_of(rows, groups=clause(*calls)), given)


def test_numbers_are_normalised_as_keras_does_it(keras: Any) -> None:
    values = np.random.default_rng(0).normal(5, 3, (200, 2)).astype(np.float32)
    layer = keras.layers.Normalization()
    layer.adapt(values)
    made = matrix(rows := rows_of(a=values[:, 0], b=values[:, 1]), plan_of(rows))
    np.testing.assert_allclose(made, layer(values), atol=1e-5)


def test_null_is_the_mean_and_has_an_indicator() -> None:
    rows = rows_of(a=[1, None, 3], b=[1.0, 2.0, 3.0])
    made = matrix(rows, plan_of(rows))
    np.testing.assert_allclose(made[:, 0], [-1, 0, 1])
    np.testing.assert_allclose(made[:, 2], [0, 1, 0])


def test_null_where_there_was_none_in_training_is_the_mean() -> None:
    rows = rows_of(a=[1.0, 3.0])
    made = matrix(rows, plan_of(rows), rows_of(a=pa.array([None, 1.0])))
    np.testing.assert_allclose(made, [[0], [-1]])


def test_infinities_stay_finite() -> None:
    rows = rows_of(a=[1.0, 3.0])
    made = matrix(rows, plan_of(rows), rows_of(a=[np.inf, -np.inf]))
    np.testing.assert_allclose(made, [[10], [-10]])


@pytest.mark.parametrize("offset", [2**40, 2**53, -(2**45)])
def test_huge_whole_numbers_keep_their_differences(offset: int) -> None:
    rows = rows_of(a=[offset, offset + 2, offset + 4])
    expected = np.array([-1, 0, 1]) * np.sqrt(1.5)
    np.testing.assert_allclose(matrix(rows, plan_of(rows))[:, 0], expected, rtol=1e-5)


def test_tiny_numbers_are_normalised_too() -> None:
    rows = rows_of(a=[1e-12, 3e-12])
    np.testing.assert_allclose(matrix(rows, plan_of(rows))[:, 0], [-1, 1], rtol=1e-4)


def test_booleans_are_0_and_1() -> None:
    rows = rows_of(a=pa.array([True, False, None]))
    np.testing.assert_allclose(matrix(rows, plan_of(rows)), [[1, 0], [0, 0], [0.5, 1]])


def test_text_is_one_hot_and_the_unseen_are_nothing() -> None:
    rows = rows_of(a=["x", "x", "ü", None])
    plan = plan_of(rows)
    assert plan.features[0].params["vocabulary"] == ["x", "", "ü"]
    given = rows_of(a=["ü", "", None, "new", "x"])
    expected = [[0, 0, 1], [0, 1, 0], [0, 1, 0], [0, 0, 0], [1, 0, 0]]
    np.testing.assert_array_equal(matrix(rows, plan, given), expected)


def test_words_that_keras_has_a_meaning_for_are_words() -> None:
    rows = rows_of(a=["[UNK]", "[UNK]_", "[UNK]"])
    np.testing.assert_array_equal(matrix(rows, plan_of(rows)), [[1, 0], [0, 1], [1, 0]])


def test_equal_to_pandas_dummies() -> None:
    values = list(np.random.default_rng(0).choice(["p", "q", "r"], 50))
    rows = rows_of(a=values)
    plan = plan_of(rows)
    dummies = pd.get_dummies(pd.Series(values))[plan.features[0].params["vocabulary"]]
    np.testing.assert_array_equal(matrix(rows, plan), dummies.to_numpy(np.float32))


def test_equal_to_a_feature_space(keras: Any) -> None:
    import tensorflow as tf

    random = np.random.default_rng(3)
    data = {"n": random.normal(4, 2, 100).astype(np.float32), "s": random.choice(list("abc"), 100)}
    space = keras.utils.FeatureSpace(
        {
            "n": keras.utils.FeatureSpace.float_normalized(),
            "s": keras.utils.FeatureSpace.string_categorical(num_oov_indices=0),
        },
        output_mode="dict",
    )
    space.adapt(tf.data.Dataset.from_tensor_slices(data).batch(10))
    theirs = space(data)
    rows = rows_of(n=data["n"], s=data["s"].tolist())
    plan = plan_of(rows)
    ours = matrix(rows, plan)
    np.testing.assert_allclose(ours[:, :1], theirs["n"], atol=1e-5)
    words = space.preprocessors["s"].get_vocabulary()
    order = [words.index(word) for word in plan.features[1].params["vocabulary"]]
    np.testing.assert_array_equal(ours[:, 1:], np.asarray(theirs["s"])[:, order])


def test_times_are_where_they_are_in_week_year_and_day() -> None:
    days = pd.date_range("1896-02-20", "2104-03-05", freq="17D") + pd.Timedelta("13h30min")
    rows = rows_of(t=pa.array(days, pa.timestamp("ms")))
    made = matrix(rows, plan_of(rows))
    np.testing.assert_array_equal(made[:, 1:8].argmax(1), days.day_of_week)
    angle = 2 * np.pi * (days.month.to_numpy() - 1) / 12
    np.testing.assert_allclose(
        made[:, 8:10], np.stack([np.sin(angle), np.cos(angle)], 1), atol=1e-5
    )
    np.testing.assert_allclose(made[:, 10], np.sin(2 * np.pi * 13 / 24), atol=1e-5)
    assert made[:, 0].mean() == pytest.approx(0, abs=1e-3)
    assert made[:, 0].std() == pytest.approx(1, abs=1e-3)


def test_month_ends_and_leap_days_are_in_their_months() -> None:
    days = pd.date_range("1999-12-25", "2001-03-05").union(
        pd.date_range("1900-02-25", "1900-03-02")
    )
    rows = rows_of(t=pa.array(days, pa.date32()))
    made = matrix(rows, plan_of(rows))
    month = np.round(np.arctan2(made[:, 8], made[:, 9]) / (2 * np.pi) * 12) % 12 + 1
    np.testing.assert_array_equal(month, days.month)
    assert made.shape[1] == 10


def test_a_time_that_is_null_is_on_no_day() -> None:
    rows = rows_of(t=pa.array([dt.date(2020, 1, 1), None, dt.date(2020, 1, 3)]))
    made = matrix(rows, plan_of(rows))
    np.testing.assert_array_equal(made[1], [0] * 10 + [1])


def test_buckets_have_null_apart() -> None:
    rows = rows_of(a=pa.array([0.5, 1.0, 7.0, None]))
    made = of_clause(rows, call("BUCKET", "a", (1, 5)))
    np.testing.assert_array_equal(made.argmax(1), [0, 1, 2, 3])


def test_buckets_of_huge_numbers_are_exact() -> None:
    base = 2**50
    rows = rows_of(a=[base, base + 1, base + 2, base + 3])
    made = of_clause(rows, call("BUCKET", "a", (base + 1, base + 3)))
    np.testing.assert_array_equal(made.argmax(1), [0, 1, 1, 2])


def test_buckets_by_quantiles_hold_as_many_rows_each() -> None:
    rows = rows_of(a=np.random.default_rng(0).exponential(size=1000))
    made = of_clause(rows, call("BUCKET", "a", 4))
    assert made.sum(0) == pytest.approx([250] * 4, abs=2)


def test_ids_out_of_range_are_unseen_and_null_is_apart() -> None:
    rows = rows_of(a=[0, 2, None])
    given = rows_of(a=pa.array([1, 3, -1, None]))
    made = of_clause(rows, call("CATEGORY_ID", "a", 3), given=given)
    np.testing.assert_array_equal(made, [[0, 1, 0, 0], [0] * 4, [0] * 4, [0, 0, 0, 1]])


def test_a_given_vocabulary_has_a_place_for_all_others() -> None:
    rows = rows_of(a=["x", "y", "z", None])
    made = of_clause(rows, call("VOCABULARY", "a", ("y", "x")))
    np.testing.assert_array_equal(made.argmax(1), [2, 1, 0, 0])
    numbers = rows_of(a=[-1, 5, 7])
    made = of_clause(numbers, call("VOCABULARY", "a", (5, -1)))
    np.testing.assert_array_equal(made.argmax(1), [2, 1, 0])


def test_hashes_keep_null_apart(keras: Any) -> None:
    words = [f"w{i}" for i in range(20)]
    rows = rows_of(a=[None, *words])
    made = of_clause(rows, call("INDICATOR", call("CATEGORY_HASH", "a", 50))).argmax(1)
    assert made[0] == 0 and (made[1:] > 0).all()
    layer = keras.layers.Hashing(50, mask_value="")
    np.testing.assert_array_equal(made[1:], layer(np.array(words)))
    numbers = of_clause(rows_of(a=[None, 5, 6]), call("CATEGORY_HASH", "a", 30)).argmax(1)
    assert numbers[0] == 0 and (numbers[1:] > 0).all()


def test_crosses_are_those_of_keras(keras: Any) -> None:
    rows = rows_of(a=["x", "y", "x"], b=[1, 2, 2])
    made = of_clause(rows, call("CROSS", ("a", "b"), 10_000))
    assert made.shape == (3, 20)  # embedded: too many for one-hot
    hot = of_clause(rows, call("INDICATOR", call("CROSS", ("a", "b"), 1000))).argmax(1)
    layer = keras.layers.HashedCrossing(1000)
    np.testing.assert_array_equal(hot, layer((np.array(["x", "y", "x"]), np.array([1, 2, 2]))))


def test_crosses_take_buckets() -> None:
    rows = rows_of(a=["x", "x", "x"], b=[1.0, 2.0, 9.0])
    crossed = call("CROSS", ("a", call("BUCKET", call("DENSE", "b"), (5,))), 1000)
    hot = of_clause(rows, call("INDICATOR", crossed)).argmax(1)
    assert hot[0] == hot[1] != hot[2]


def test_texts_of_numbers_are_vectors() -> None:
    rows = rows_of(a=["1, 10", "[3,30]", None, ""])
    made = of_clause(rows, call("DENSE", "a", 2))
    np.testing.assert_allclose(made, [[-1, -1], [1, 1], [0, 0], [0, 0]], atol=1e-6)


def test_a_vector_of_another_length_is_refused_with_its_text(keras: Any) -> None:
    import tensorflow as tf

    rows = rows_of(a=["1,2", "3,4"])
    plan = plan_of(rows, groups=clause(call("DENSE", "a", 2)))
    with pytest.raises(DataError, match="'a' has '1,2,3', and the model takes 2 numbers with ','"):
        matrix(rows, plan, rows_of(a=["1,2,3"]))
    model = wrap(lambda: keras.Sequential([keras.layers.Identity()]), plan)
    with pytest.raises(tf.errors.InvalidArgumentError, match="not 2 numbers"):
        model({"a": tf.constant(["1,2,3"])})


@pytest.mark.parametrize("separator", [",", " ", "|", ";;"])
def test_texts_that_hold_no_numbers_are_refused_with_their_column(separator: str) -> None:
    rows = rows_of(a=[separator.join("12"), separator.join("30"), None, ""])
    for one in (call("SPARSE", "a", 4, separator), call("DENSE", "a", 2, separator)):
        plan = plan_of(rows, groups=clause(one))
        fitting = rows_of(a=["", None, f" [3{separator}1] ", "  "])
        assert matrix(rows, plan, fitting).shape[0] == 4
        for text in ("red", f"1{separator}x", f"1{separator}2.5.1", "1\n2;"):
            with pytest.raises(DataError, match="The column 'a' has "):
                matrix(rows, plan, rows_of(a=["", text]))


def test_texts_of_ids_are_multi_hot() -> None:
    rows = rows_of(a=["0,2", "", None, "1", "2,2"])
    made = of_clause(rows, call("SPARSE", "a", 3), given=rows_of(a=["0,2", "", None, "1", "2,2,9"]))
    np.testing.assert_array_equal(made, [[1, 0, 1], [0] * 3, [0] * 3, [0, 1, 0], [0, 0, 1]])


def test_only_empty_texts_of_ids_are_zeros() -> None:
    rows = rows_of(a=["0,2", "1"])
    made = of_clause(rows, call("SPARSE", "a", 3), given=rows_of(a=["", None]))
    np.testing.assert_array_equal(made, np.zeros((2, 3)))


@pytest.mark.parametrize("combiner", ["mean", "sum", "sqrtn"])
def test_several_embeddings_are_combined(keras: Any, combiner: str) -> None:
    rows = rows_of(a=["0,2", "1", ""])
    groups = clause(call("EMBEDDING", call("SEQ_CATEGORY_ID", "a", 3), 4, combiner))
    plan = plan_of(rows, groups=groups)
    model = wrap(lambda: keras.Sequential([keras.layers.Identity()]), plan)
    (layer,) = [layer for layer in model.layers if isinstance(layer, keras.layers.Embedding)]
    table = np.asarray(layer.embeddings)
    divided = {"mean": 2, "sum": 1, "sqrtn": np.sqrt(2)}[combiner]
    expected = [(table[1] + table[3]) / divided, table[2], np.zeros(4)]
    np.testing.assert_allclose(model(tensors_of(rows, plan)), expected, atol=1e-6)


def test_embeddings_have_a_vector_for_the_unseen() -> None:
    rows = rows_of(a=[f"w{i}" for i in range(40)])
    made = matrix(rows, plan_of(rows), rows_of(a=["w1", "new", "other"]))
    np.testing.assert_array_equal(made[1], made[2])
    assert not np.array_equal(made[0], made[1])


def test_whole_numbers_may_be_categories_and_amounts_at_once() -> None:
    rows = rows_of(a=pa.array([0, 1, None, 2]))
    made = of_clause(
        rows, call("DENSE", "a"), call("CATEGORY_ID", "a", 3), call("BUCKET", "a", (1,))
    )
    np.testing.assert_allclose(made[:, 0], np.array([-1, 0, 0, 1]) * np.sqrt(1.5), atol=1e-6)
    np.testing.assert_array_equal(made[:, 1], [0, 0, 1, 0])
    np.testing.assert_array_equal(made[:, 2:6].argmax(1), [0, 1, 3, 2])
    np.testing.assert_array_equal(made[:, 6:].argmax(1), [0, 1, 2, 1])


def test_several_targets_are_a_dict_of_matrices(keras: Any) -> None:
    rows = rows_of(a=[1.0, 2.0], b=["x", "y"])
    groups = [ColumnGroup([call("DENSE", "a")], "deep"), ColumnGroup([call(None, "b")], "wide")]
    plan = plan_of(rows, groups=groups)
    seen = {}

    class Two(keras.Model):
        def call(self, inputs: Any) -> Any:
            seen.update({name: tuple(one.shape) for name, one in inputs.items()})
            return inputs["deep"] + inputs["wide"][:, :1]

    assert wrap(Two, plan)(tensors_of(rows, plan)).shape == (2, 1)
    assert {name: shape[1] for name, shape in seen.items()} == {"deep": 1, "wide": 2}


def test_a_plan_that_was_json_gives_the_same_matrix(
    table: pa.Table, plan: FeaturePlan, keras: Any
) -> None:
    again = FeaturePlan.from_json(json.loads(json.dumps(plan.to_json())))
    keras.utils.set_random_seed(1)
    first = matrix(table, plan)
    keras.utils.set_random_seed(1)
    np.testing.assert_array_equal(first, matrix(table, again))
    assert np.isfinite(first).all()


def test_layers_have_the_same_names_each_time(plan: FeaturePlan, keras: Any) -> None:
    def paths() -> list[str]:
        model = wrap(lambda: keras.Sequential([keras.layers.Identity()], name="inner"), plan)
        return [variable.path for variable in model.variables]

    assert paths() == paths() != []


def test_a_model_that_takes_another_input_is_refused_with_the_shapes(keras: Any) -> None:
    rows = rows_of(a=[1.0, 2.0], b=[1.0, 3.0])
    build = lambda: keras.Sequential([keras.Input((7,)), keras.layers.Dense(1)])  # noqa: E731
    with pytest.raises(
        ContractError, match=r"Sequential does not take what the columns become, \[None, 2\]"
    ):
        wrap(build, plan_of(rows))
