"""What a statement came to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from elasticdl.sql.rows import Rows
from elasticdl.sql.statements import Statement

if TYPE_CHECKING:
    from elasticdl.runtime.result import Result

__all__ = ["Outcome", "counted"]


@dataclass(frozen=True)
class Outcome:
    """One statement's end.

    Attributes:
      statement: which one.
      rows: what it returns; None when it returns none. To be taken, or closed, before the next statement is run.
      message: what a person should know: what was made, how many rows were written.
      result: of a training, evaluation or prediction.
      seconds: how long it took, without taking the rows.
    """

    statement: Statement
    rows: Rows | None = None
    message: str = ""
    result: Result | None = None
    seconds: float = 0.0


def counted(rows: int) -> str:
    """A number of rows in words.

    >>> counted(1), counted(2000)
    ('1 row', '2,000 rows')
    """
    return "1 row" if rows == 1 else f"{rows:,} rows"
