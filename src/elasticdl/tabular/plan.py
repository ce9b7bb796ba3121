"""`FeaturePlan`: how the columns of a table become a model's input and label. Plain data, kept with the model.

It is made of the data (`derive`) and of what the user said (`COLUMN`); everything that reads rows or builds
layers goes by it, in training, evaluation and prediction alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["Column", "Feature", "FeaturePlan", "Label"]

VERSION = 1


@dataclass(frozen=True)
class Column:
    """A column as the model gets it, one value a row.

    Attributes:
      name: as selected.
      dtype: float32 or float64 (a NULL is NaN), int64 (a NULL is the smallest int64) or string (a NULL is empty).
      source: what the database calls its type, for people and to notice that it has changed.
      several: of a text that holds several values, which; see `tabular.several`.
    """

    name: str
    dtype: str
    source: str = ""
    several: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Feature:
    """One piece of the model's input.

    Attributes:
      name: unique among the features.
      kind: which layers it is made of, see `tabular.layers`.
      columns: the columns that it is made of.
      params: what the layers need: mean, variance, vocabulary, boundaries, ... JSON values only.
      target: the input of the model that it is a part of; None when the model has one input.
    """

    name: str
    kind: str
    columns: tuple[str, ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    target: str | None = None


@dataclass(frozen=True)
class Label:
    """What is predicted.

    Attributes:
      name: the column.
      task: classification or regression.
      dtype: of the column as it is read: float32, float64 (numbers far from zero), int64 or string.
      classes: of a classification, its values in the order of the model's outputs: all str, int, float or bool.
      source: what the database calls its type.
      mean, std: of a regression, in the rows of the training.
    """

    name: str
    task: str
    dtype: str
    classes: tuple[str | int | float | bool, ...] = ()
    source: str = ""
    mean: float = 0.0
    std: float = 1.0


@dataclass(frozen=True)
class FeaturePlan:
    """The columns that are read, the features that they become, the label, and what a person should know."""

    columns: tuple[Column, ...]
    features: tuple[Feature, ...]
    label: Label | None = None
    remarks: tuple[str, ...] = ()

    @property
    def targets(self) -> tuple[str | None, ...]:
        """The inputs of the model, in order."""
        return tuple(dict.fromkeys(feature.target for feature in self.features))

    @property
    def label_columns(self) -> tuple[Column, ...]:
        """The label as a column that is read: one, or none."""
        if self.label is None:
            return ()
        return (Column(self.label.name, self.label.dtype, self.label.source),)

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    def to_json(self) -> dict[str, Any]:
        return {"version": VERSION, **asdict(self)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> FeaturePlan:
        label = values.get("label")
        return cls(
            columns=tuple(Column(**column) for column in _maps(values["columns"])),
            features=tuple(
                Feature(**{**feature, "columns": tuple(feature["columns"])})
                for feature in _maps(values["features"])
            ),
            label=Label(**{**label, "classes": tuple(label["classes"])}) if label else None,
            remarks=tuple(values.get("remarks", ())),
        )


def _maps(values: Sequence[Any]) -> list[dict[str, Any]]:
    return [dict(value) for value in values]
