"""`derive`: the plan of a table, of its statistics and of what the user said with COLUMN."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from elasticdl.errors import DataError, StatementError, nearest
from elasticdl.tabular.column_functions import feature_of, with_target
from elasticdl.tabular.derived import is_constant, is_name, natural
from elasticdl.tabular.describe import describe
from elasticdl.tabular.expression import ColumnGroup
from elasticdl.tabular.label import derive_label
from elasticdl.tabular.plan import Column, Feature, FeaturePlan, Label
from elasticdl.tabular.profile import ColumnProfile, Profile
from elasticdl.tabular.several import several
from elasticdl.tabular.types import find

__all__ = ["Profile", "derive", "describe"]

MANY_ROWS = 100
"""So many rows tell whether a column has another value in each of them."""
_AS_NAME = ("id", "vocabulary", "hash", "value")
"""Kinds that look at a whole number as a name, not as an amount."""


def derive(
    profile: Profile,
    *,
    label: str | None,
    task: str | None,
    groups: Sequence[ColumnGroup] = (),
    exclude: Sequence[str] = (),
    targets: Sequence[str] | None = None,
) -> FeaturePlan:
    """The plan of the rows that a profile has seen.

    Args:
      label: the column that is predicted; None when there is none.
      task: classification or regression; None to go by the label.
      groups: the COLUMN clauses.
      exclude: columns that are neither features nor the label.
      targets: the inputs that the model has, none when it has one; None when they are not known.

    Raises:
      StatementError: a COLUMN clause that does not fit, with its place.
      DataError: rows or columns that nothing can be learnt from.
    """
    columns = _usable(profile, exclude)
    groups = [with_target(group, targets) for group in groups]
    found: Label | None = None
    if label is not None:
        found = derive_label(columns.pop(_label_name(label, columns)), profile.num_rows, task)
    remarks: list[str] = []
    features = _said(groups, columns, found)
    features += _rest(
        _open_targets(groups, targets or ()), columns, features, profile.num_rows, remarks
    )
    if not features:
        raise DataError(
            " ".join(["There is no column to learn from.", *remarks, "Select more columns."])
        )
    features = _unique_names(features)
    return FeaturePlan(_columns(columns.values(), features), tuple(features), found, tuple(remarks))


def _usable(profile: Profile, exclude: Sequence[str]) -> dict[str, ColumnProfile]:
    names = profile.schema.names
    if not profile.num_rows:
        raise DataError("The SELECT gave no rows: there is nothing to learn from.")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise DataError(
            f"The column {twice[0]!r} is selected more than once. Give one of them another name with AS."
        )
    excluded = set()
    for name in exclude:
        if (column := find(name, names)) is None:
            raise DataError(f"There is no column {name!r} to leave out. {nearest(name, names)}")
        excluded.add(column)
    return {name: column for name, column in profile.columns.items() if name not in excluded}


def _label_name(label: str, columns: dict[str, ColumnProfile]) -> str:
    if (name := find(label, columns)) is None:
        raise DataError(
            f"The label {label!r} is no column of the SELECT. {nearest(label, columns)}".rstrip()
        )
    return name


def _said(
    groups: Sequence[ColumnGroup], columns: dict[str, ColumnProfile], label: Label | None
) -> list[Feature]:
    """The features of the COLUMN clauses."""
    targets = {group.target for group in groups}
    features = []
    for group in groups:
        if group.target is None and len(targets) > 1 and group.columns:
            span = group.columns[0].span
            raise StatementError(
                "Some COLUMN clauses say FOR which input of the model they are, and this one does not. Say it "
                "for all of them, for example COLUMN age FOR dnn.",
                span.start,
                span.end,
            )
        features += [feature_of(call, columns, label, group.target) for call in group.columns]
    return features


def _open_targets(groups: Sequence[ColumnGroup], known: Sequence[str]) -> list[str | None]:
    """The inputs of the model that get the columns which no clause names."""
    said = list(dict.fromkeys(group.target for group in groups))
    if len(said) <= 1 and (not said or said[0] is None or not known):
        return said or [None]
    return [target for target in known if target not in said]


def _rest(
    targets: Sequence[str | None],
    columns: dict[str, ColumnProfile],
    features: Sequence[Feature],
    num_rows: int,
    remarks: list[str],
) -> list[Feature]:
    """The columns that no clause names: derived, when it is clear which input of the model they belong to."""
    named = {column for feature in features for column in feature.columns}
    rest = [column for name, column in columns.items() if name not in named]
    if not targets and rest:
        shown = ", ".join(column.name for column in rest)
        remarks.append(f"Not used, as no COLUMN clause names it: {shown}.")
        return []
    _check_single([column for column in rest if column.family is None])
    told: list[ColumnProfile] = []
    names: list[ColumnProfile] = []
    for column in rest:
        if (why := is_constant(column)) is not None:
            remarks.append(f"The column {column.name} is left out: it {why}.")
        elif num_rows >= MANY_ROWS and is_name(column):
            names.append(column)
        else:
            told.append(column)
    if features or told:
        remarks += [_left_out(column) for column in names]
        names = []
    return [natural(column, target) for column in (*told, *names) for target in targets]


def _check_single(columns: Sequence[ColumnProfile]) -> None:
    """Of many columns that no model can take, all are named at once."""
    if len(columns) > 1:
        shown = ", ".join(f"{column.name!r} ({column.type})" for column in columns)
        raise DataError(
            f"The columns {shown} are no single values a row that a model could take. Leave them out of the SELECT, "
            "or cast them, for example to numbers or text."
        )


def _left_out(column: ColumnProfile) -> str:
    return (
        f"The column {column.name} is left out: it has another value in nearly every row, which says nothing of new "
        f"rows. COLUMN {column.name} uses it all the same."
    )


def _unique_names(features: Sequence[Feature]) -> list[Feature]:
    taken: set[str] = set()
    named = []
    for feature in features:
        name, number = feature.name, 2
        while name in taken:
            name, number = f"{feature.name}_{number}", number + 1
        taken.add(name)
        named.append(Feature(name, feature.kind, feature.columns, feature.params, feature.target))
    return named


def _columns(profiles: Iterable[ColumnProfile], features: Sequence[Feature]) -> tuple[Column, ...]:
    """The columns that are read, each in the one form that all of its features can start from."""
    kinds: dict[str, set[str]] = {}
    for feature in features:
        for name, kind in _uses(feature):
            kinds.setdefault(name, set()).add(kind)
    forms = {
        feature.columns[0]: several(feature.kind, feature.params)
        for feature in reversed(features)
        if feature.kind in ("sequence", "vector")
    }
    return tuple(
        Column(p.name, _dtype(p, kinds[p.name]), str(p.type), forms.get(p.name))
        for p in profiles
        if p.name in kinds
    )


def _uses(feature: Feature) -> list[tuple[str, str]]:
    if feature.kind == "cross":
        return [(key["column"], key["kind"]) for key in feature.params["keys"]]
    return [(name, feature.kind) for name in feature.columns]


def _dtype(column: ColumnProfile, kinds: set[str]) -> str:
    if column.family in ("text", "binary", "null"):
        return "string"
    if column.family == "time" or kinds.intersection(_AS_NAME):
        return "int64"
    moments = column.moments
    largest, spread = max(-moments.min, moments.max, 0.0), moments.variance**0.5
    # A float32 has 24 bits: as many must be left to tell the values apart as a network can make use of.
    exact = largest <= 2**24 and (spread == 0 or (largest < 2**16 * spread and spread > 1e-5))
    if exact:
        return "float32"
    # Whole numbers stay so: Keras' own `predict` and `fit` round arrays of float64 to float32.
    return "int64" if column.family == "integer" and column.fits_int64 else "float64"
