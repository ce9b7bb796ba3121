"""A model's outputs as values of the label."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from elasticdl.errors import ContractError
from elasticdl.sql.decode import Decoder, class_probabilities
from elasticdl.tabular.plan import FeaturePlan, Label


def plan(*classes: object) -> FeaturePlan:
    task = "classification" if classes else "regression"
    return FeaturePlan((), (), Label("y", task, "string", tuple(classes)))


def outputs(rows: list[list[float]]) -> pa.Array:
    flat = pa.array(np.array(rows, np.float32).ravel())
    return pa.FixedSizeListArray.from_arrays(flat, len(rows[0]))


def test_numbers_are_as_predicted() -> None:
    decoder = Decoder(plan(), "salary", probabilities=True)
    assert [field.name for field in decoder.fields] == ["salary"]
    assert decoder.decode(outputs([[1.5], [2.0]]))[0].to_pylist() == [1.5, 2.0]


@pytest.mark.parametrize("classes", [("no", "yes"), (3, 7), (False, True), (0.5, 1.5)])
def test_classes_have_the_values_and_type_of_the_label(classes: tuple) -> None:
    decoder = Decoder(plan(*classes), "y", probabilities=False)
    (chosen,) = decoder.decode(outputs([[0.9, 0.1], [0.2, 0.8]]))
    assert chosen.to_pylist() == list(classes)
    assert chosen.type == decoder.fields[0].type


def test_probabilities_have_a_column_for_each_class() -> None:
    decoder = Decoder(plan("a", "b", "c"), "y", probabilities=True)
    names = [field.name for field in decoder.fields]
    assert names == ["y", "probability_a", "probability_b", "probability_c"]
    chosen, *parts = decoder.decode(outputs([[0.2, 0.5, 0.3]]))
    assert chosen.to_pylist() == ["b"]
    assert [part[0].as_py() for part in parts] == pytest.approx([0.2, 0.5, 0.3])


def test_logits_become_probabilities() -> None:
    label = plan("a", "b").label
    assert label is not None
    found = class_probabilities(np.array([[2.0, 2.0], [-5.0, 5.0]]), label)
    assert found[0] == pytest.approx([0.5, 0.5])
    assert found.sum(1) == pytest.approx([1, 1])


def test_one_output_is_the_second_of_two_classes() -> None:
    label = plan("no", "yes").label
    assert label is not None
    assert class_probabilities(np.array([[0.3]]), label)[0] == pytest.approx([0.7, 0.3])
    assert class_probabilities(np.array([[-3.0], [3.0]]), label).argmax(1).tolist() == [0, 1]


def test_outputs_that_are_not_one_a_class_are_refused() -> None:
    label = plan("a", "b", "c").label
    assert label is not None
    with pytest.raises(ContractError, match="2 numbers a row, and y has 3 classes"):
        class_probabilities(np.array([[0.5, 0.5]]), label)
