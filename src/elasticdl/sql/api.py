"""SQL from Python: `elasticdl.sql("SELECT ...")`."""

from __future__ import annotations

import html
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from elasticdl.errors import InvalidValue, UnknownName, nearest
from elasticdl.sql.environment import database_address, models_address
from elasticdl.sql.outcome import Outcome
from elasticdl.sql.rows import Rows
from elasticdl.sql.shown import Shown, html_table, text_table

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]

    from elasticdl.runtime.result import Result

__all__ = ["SqlResult", "collect", "sql"]

SHOWN_ROWS = 40
OPTIONS = ("is_cancelled", "log_level", "on_event", "seed", "tell")


@dataclass(frozen=True)
class SqlResult:
    """What a text of statements came to. Shows itself well in a notebook.

    Attributes:
      outcomes: what each statement came to.
      tables: the rows of each statement, as Arrow; None for one that returns none.
    """

    outcomes: Sequence[Outcome]
    tables: Sequence[pa.Table | None]

    @property
    def table(self) -> pa.Table | None:
        """The rows of the last statement that returned some, as Arrow."""
        return next((table for table in reversed(self.tables) if table is not None), None)

    @property
    def result(self) -> Result | None:
        """Of the last training, evaluation or prediction."""
        return next((o.result for o in reversed(self.outcomes) if o.result is not None), None)

    @property
    def message(self) -> str:
        """What the statements say of themselves, a line each."""
        return "\n".join(outcome.message for outcome in self.outcomes if outcome.message)

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a DataFrame."""
        if self.table is None:
            raise InvalidValue("There are no rows: no statement of the text returns any.")
        frame: pd.DataFrame = self.table.to_pandas()
        return frame

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self.table.to_batches() if self.table is not None else ():
            yield from batch.to_pylist()

    def __len__(self) -> int:
        return 0 if self.table is None else self.table.num_rows

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        parts: list[str] = []
        for outcome, table in zip(self.outcomes, self.tables, strict=True):
            parts += [outcome.message] if outcome.message else []
            parts += [text_table(_first(table))] if table is not None else []
        return "\n".join(parts)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        parts: list[str] = []
        for outcome, table in zip(self.outcomes, self.tables, strict=True):
            parts += [f"<p>{html.escape(line)}</p>" for line in outcome.message.splitlines()]
            parts += [html_table(_first(table))] if table is not None else []
        return "".join(parts)


def sql(
    text: str,
    db: str | os.PathLike[str] | None = None,
    models: str | os.PathLike[str] | None = None,
    model_zoo: str | None = None,
    **options: Any,
) -> SqlResult:
    """Run SQL that may also train and predict.

    Args:
      text: one statement or several.
      db: the address of a database, such as postgresql://me@host/shop; without one ELASTICDL_DB of the environment,
        else DuckDB in memory.
      models: the directory, or fsspec address, where trained models are kept; without one ELASTICDL_MODELS, else
        `models`.
      model_zoo: a directory or Git address of more models.
      **options: log_level, seed; tell, which is called with remarks; on_event, which is called with a run's events;
        is_cancelled, which is asked whether to stop.

    Raises:
      ElasticDLError: a statement is wrong, or failed. See `elasticdl.errors`.

    Example:
      >>> import elasticdl
      >>> elasticdl.sql("SELECT 6 * 7 AS answer").to_pandas()                  # doctest: +SKIP
    """
    _check(options)
    if db is not None and not isinstance(db, (str, os.PathLike)):
        raise InvalidValue(
            f"Invalid db {db!r}: give the address of a database, such as duckdb:///shop.db."
        )
    from elasticdl.sql.session import Session

    options.setdefault("tell", lambda line: print(line, file=sys.stderr, flush=True))
    address, kept = database_address(db), models_address(models)
    with Session(address, models=kept, model_zoo=model_zoo, **options) as session:
        return collect(session.run(text))


def collect(outcomes: Iterable[Outcome]) -> SqlResult:
    """Takes the rows of each statement before the next one is run."""
    kept: list[Outcome] = []
    tables: list[pa.Table | None] = []
    for outcome in outcomes:
        table = None if outcome.rows is None else outcome.rows.to_table()
        kept.append(outcome if table is None else replace(outcome, rows=Rows.of(table)))
        tables.append(table)
    return SqlResult(tuple(kept), tuple(tables))


def _check(options: dict[str, Any]) -> None:
    for name in options:
        if name not in OPTIONS:
            known = ("db", "models", "model_zoo", *OPTIONS)
            raise UnknownName(f"Unknown option {name!r} of elasticdl.sql. {nearest(name, known)}")


def _first(table: pa.Table) -> Shown:
    return Shown.of(Rows.of(table), SHOWN_ROWS)
