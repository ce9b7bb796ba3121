"""A session without an engine: what the ways in need of one, so that their tests take no training."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import duckdb

from elasticdl.errors import DataError, StatementError
from elasticdl.runtime.result import Result
from elasticdl.sql.outcome import Outcome
from elasticdl.sql.rows import Rows
from elasticdl.sql.statements import Plain

EVENTS: list[Mapping[str, Any]] = [
    {"event": "run_started", "command": "train", "records": 10, "num_epochs": 2},
    {"event": "epoch", "epoch": 0, "loss": 0.5},
    {"event": "epoch", "epoch": 1, "loss": 0.25},
]


class FakeDatabase:
    dialect = "duckdb"

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def tables(self) -> list[str]:
        return [row[0] for row in self._connection.execute("SHOW TABLES").fetchall()]

    def columns(self, table: str) -> list[str]:
        return [row[0] for row in self._connection.execute(f'DESCRIBE "{table}"').fetchall()]


class FakeSession:
    """DuckDB for plain SQL; TRAIN tells and sends events, NOTE remarks, HANG waits for its end, BREAK fails."""

    hanging = threading.Event()
    ended = threading.Event()

    def __init__(
        self,
        db: str | None = None,
        *,
        models: str = "models",
        tell: Callable[[str], None] = lambda line: None,
        on_event: Callable[[Mapping[str, Any]], None] | None = None,
        is_cancelled: Callable[[], bool] = lambda: False,
        **options: Any,
    ) -> None:
        self._connection = duckdb.connect(db or ":memory:")
        self.database = FakeDatabase(self._connection)
        self._told = (tell, on_event or (lambda event: None), is_cancelled)

    def run(self, text: str) -> Iterator[Outcome]:
        for one in filter(None, (part.strip() for part in text.split(";"))):
            yield self._run_one(Plain(one, (0, len(one))))

    def _run_one(self, statement: Plain) -> Outcome:
        tell, on_event, is_cancelled = self._told
        if "TRAIN" in statement.text:
            tell("The label is salary, the last selected column.")
            for event in EVENTS:
                on_event(event)
            result = Result(
                command="train", status="completed", steps=4, model_path=Path("models/m/1")
            )
            return Outcome(statement, message="Trained m, version 1.", result=result, seconds=2.4)
        if statement.text == "HANG":
            tell("It hangs.")
            self.hanging.set()
            while not is_cancelled():
                self.ended.wait(0.01)
            self.ended.set()
            raise DataError("It was cancelled.")
        if statement.text == "BREAK":
            raise StatementError("line 1, column 1:\n  BREAK\n  ^^^^^\nUnknown word.", 0, 5)
        if statement.text == "BUG":
            raise ZeroDivisionError("nobody thought of it")
        if statement.text == "LEAVE":
            raise SystemExit(3)
        if statement.text.startswith("NOTE "):
            tell("Remark.")
        made = self._connection.sql(statement.text.removeprefix("NOTE "))
        if made is None or "SELECT" not in statement.text.split()[:2]:
            return Outcome(statement, message="Done.")
        return Outcome(statement, Rows.of(made.to_arrow_table()))

    def models(self) -> list[str]:
        return ["my_model"]

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> FakeSession:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
