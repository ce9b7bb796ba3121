"""`Session`: runs SQL texts, statement by statement."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from elasticdl.errors import NotFound, StatementError, UserError
from elasticdl.sql import statements as s
from elasticdl.sql.context import Context
from elasticdl.sql.databases import open_database
from elasticdl.sql.databases.base import Database
from elasticdl.sql.environment import DEFAULT_MODELS
from elasticdl.sql.outcome import Outcome, counted
from elasticdl.sql.parse import parse
from elasticdl.sql.places import in_statement
from elasticdl.sql.point import point
from elasticdl.sql.registry import Registry

__all__ = ["Session"]


class Session:
    """A database and a registry of models, and the statements that use them.

        with Session("duckdb:///company.db") as session:
            for outcome in session.run("SELECT * FROM staff TRAIN regressor.DNN LABEL salary INTO pay;"):
                print(outcome.message)

    Args:
      db: the address of a database; DuckDB in memory by default.
      models: where trained models are: a directory, or an fsspec address.
      model_zoo: a directory or Git address of models beside those that are built in.
      tell: hears remarks while a statement runs.
      on_event: hears the events of trainings and predictions; then there is no progress bar.
      is_cancelled: asked now and then whether to stop.
      log_level: how much of a run reaches the screen.
      seed: of trainings that name none.
      train_defaults: options of the job, such as num_workers, for trainings that say nothing else.
      spool: the directory in which rows are put aside for a job; that of temporary files by default.
    """

    def __init__(
        self,
        db: str | None = None,
        *,
        models: str = DEFAULT_MODELS,
        model_zoo: str | None = None,
        tell: Callable[[str], None] | None = None,
        on_event: Callable[[Mapping[str, Any]], None] | None = None,
        is_cancelled: Callable[[], bool] | None = None,
        log_level: str = "INFO",
        seed: int | None = None,
        train_defaults: Mapping[str, Any] | None = None,
        spool: str | None = None,
    ) -> None:
        if spool is not None and not Path(spool).is_dir():
            raise NotFound(
                f"The spool {spool!r} is not a directory. Give one that all workers see."
            )
        self._context = Context(
            database=open_database(db),
            registry=Registry(models),
            model_zoo=model_zoo,
            tell=tell or (lambda text: None),
            on_event=on_event,
            is_cancelled=is_cancelled or (lambda: False),
            log_level=log_level,
            seed=seed,
            train_defaults=dict(train_defaults or {}),
            spool=spool,
        )

    @property
    def database(self) -> Database:
        return self._context.database

    def models(self) -> list[str]:
        """The names of the models that there are."""
        return self._context.registry.names()

    def run(self, text: str) -> Iterator[Outcome]:
        """Run all statements of a text. A text that cannot be read runs none of them.

        Raises:
          StatementError: with the line, the column and the place.
        """
        with _Pointing(text):
            found = parse(text, self.database.dialect)
        for statement in found:
            began = time.monotonic()
            with _Pointing(text):
                outcome = self._run(statement)
            yield replace(outcome, seconds=time.monotonic() - began)

    def _run(self, statement: s.Statement) -> Outcome:
        """Each kind of statement is a room of its own, which is loaded when it is entered."""
        context = self._context
        if isinstance(statement, s.Plain):
            return self._plain(statement)
        if isinstance(statement, s.Train):
            from elasticdl.sql.train import train

            return train(context, statement)
        if isinstance(statement, s.Predict):
            from elasticdl.sql.predict import predict

            return predict(context, statement)
        if isinstance(statement, s.Evaluate):
            from elasticdl.sql.evaluate import evaluate

            return evaluate(context, statement)
        if isinstance(statement, s.Explain):
            from elasticdl.sql.explain import explain

            return explain(context, statement)
        if isinstance(statement, s.DryRun):
            return self._dry_run(statement)
        return self._show(statement)

    def _show(self, statement: s.Statement) -> Outcome:
        from elasticdl.sql import show

        if isinstance(statement, s.ShowModels):
            return show.show_models(self._context, statement)
        if isinstance(statement, s.ShowTrain):
            return show.show_train(self._context, statement)
        if isinstance(statement, s.DescribeModel):
            return show.describe_model(self._context, statement)
        assert isinstance(statement, s.DropModel)
        return show.drop_model(self._context, statement)

    def _dry_run(self, statement: s.DryRun) -> Outcome:
        if not isinstance(statement.inner, s.Train):
            span = statement.span
            raise StatementError(
                "EXPLAIN is for SELECT ... TRAIN ...: what it would train and write.",
                span.start,
                span.end,
            )
        from elasticdl.sql.train import dry_run

        return replace(dry_run(self._context, statement.inner), statement=statement)

    def _plain(self, statement: s.Plain) -> Outcome:
        try:
            rows = self.database.run(statement.text)
        except UserError as error:
            raise in_statement(statement, error) from error
        if rows is not None:
            return Outcome(statement, rows)
        changed = self.database.changed
        return Outcome(
            statement, message="Done." if changed is None else f"{counted(changed)} changed."
        )

    def close(self) -> None:
        self.database.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


class _Pointing:
    """Errors of a statement show their place in the text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, StatementError) and error.start is not None:
            end = error.end if error.end is not None else error.start
            shown = f"{error.message}\n{point(self._text, error.start, end)}"
            pointed = StatementError(shown)
            raise pointed from error.__cause__
