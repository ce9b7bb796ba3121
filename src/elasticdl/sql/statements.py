"""What a SQL text says, typed: one of these for each statement, with the places where its words were."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from elasticdl.tabular.expression import ColumnGroup, Span

__all__ = [
    "DescribeModel",
    "DropModel",
    "DryRun",
    "Evaluate",
    "Explain",
    "Plain",
    "Predict",
    "ShowModels",
    "ShowTrain",
    "Statement",
    "Train",
    "Word",
    "returns_rows",
]


@dataclass(frozen=True)
class Word:
    """A name or a value, and where it was written. Equal when the values are.

    Attributes:
      quoted: whether it was in quotes, which some databases take for a name that is meant to the letter.
    """

    value: Any
    span: Span = field(compare=False)
    quoted: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class Statement:
    """A statement as it was written, without its semicolon; spans count from the begin of the whole text."""

    text: str
    span: Span


@dataclass(frozen=True)
class Plain(Statement):
    """For the database alone, which gets `text` verbatim."""


@dataclass(frozen=True)
class WithSelect(Statement):
    """A statement of ours around a SELECT, which the database gets verbatim."""

    select: str
    select_span: Span
    attributes: Mapping[str, Word]
    """WITH: dotted keys in lower case, each value a str, int, float, bool, None or a tuple of these."""
    attribute_spans: Mapping[str, Span]
    """Where the keys themselves are."""


@dataclass(frozen=True)
class Train(WithSelect):
    """`SELECT ... TRAIN model WITH ... COLUMN ... LABEL y USING old INTO name`, or `CREATE MODEL`."""

    model: Word
    into: Word
    columns: Sequence[ColumnGroup] = ()
    label: Word | None = None
    using: Word | None = None
    if_exists: str = "add"
    """add a version; refuse (CREATE MODEL), replace (OR REPLACE drops the versions before) or keep (IF NOT EXISTS)."""


@dataclass(frozen=True)
class Predict(WithSelect):
    """`SELECT ... PREDICT table.column USING model`; without a target the rows come back."""

    using: Word
    target: Sequence[Word] = ()
    """`[db.]table.column`, its parts; none for rows."""


@dataclass(frozen=True)
class Evaluate(WithSelect):
    """`SELECT ... EVALUATE model WITH ... LABEL y INTO table`."""

    using: Word
    label: Word | None = None
    into: Sequence[Word] = ()


@dataclass(frozen=True)
class Explain(WithSelect):
    """`SELECT ... EXPLAIN model WITH ... USING explainer INTO table`."""

    using: Word
    explainer: Word | None = None
    into: Sequence[Word] = ()
    label: Word | None = None


@dataclass(frozen=True)
class DryRun(Statement):
    """`EXPLAIN` before one of the others: what it would do."""

    inner: Train | Predict | Evaluate | Explain


@dataclass(frozen=True)
class ShowModels(Statement):
    """`SHOW MODELS [LIKE pattern]`."""

    like: Word | None = None


@dataclass(frozen=True)
class ShowTrain(Statement):
    """`SHOW TRAIN name`: the statement that trained it."""

    name: Word


@dataclass(frozen=True)
class DescribeModel(Statement):
    """`DESCRIBE MODEL name`."""

    name: Word


@dataclass(frozen=True)
class DropModel(Statement):
    """`DROP MODEL [IF EXISTS] name[@version]`."""

    name: Word
    if_exists: bool = False


_READING = re.compile(
    r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*"
    r"(?:SELECT|WITH|VALUES|FROM|TABLE|SHOW|DESCRIBE|DESC|EXPLAIN|SUMMARIZE|PIVOT|UNPIVOT)\b",
    re.IGNORECASE | re.DOTALL,
)


def returns_rows(statement: Statement) -> bool:
    """Whether a statement is one that returns rows; of what the database alone knows, by its first word."""
    match statement:
        case Plain():
            return _READING.match(statement.text) is not None
        case Predict():
            return not statement.target
        case Evaluate() | Explain():
            return not statement.into
        case _:
            return not isinstance(statement, Train | DropModel)
