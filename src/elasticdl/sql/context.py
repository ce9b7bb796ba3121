"""What the statements of a session share: the database, the models, whom to tell."""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elasticdl.errors import ElasticDLError, Stopped, UserError
from elasticdl.sql.databases.base import Database
from elasticdl.sql.places import at, in_select
from elasticdl.sql.registry import Registry, Version
from elasticdl.sql.rows import Rows
from elasticdl.sql.statements import WithSelect, Word

__all__ = ["Context"]

_JOBS = threading.Lock()
"""Seeds, and TensorFlow's and Keras' own state, belong to a process: its jobs go one after the other."""


class _Listener:
    """The events of a run, for who wants to follow it."""

    def __init__(self, hear: Callable[[Mapping[str, Any]], None]) -> None:
        self._hear = hear

    def receive(self, event: Mapping[str, Any]) -> None:
        self._hear(event)

    def close(self) -> None: ...


@dataclass(frozen=True)
class Context:
    """See `Session` for what these are."""

    database: Database
    registry: Registry
    model_zoo: str | None
    tell: Callable[[str], None]
    on_event: Callable[[Mapping[str, Any]], None] | None
    is_cancelled: Callable[[], bool]
    log_level: str
    seed: int | None
    train_defaults: Mapping[str, Any]
    spool: str | None

    @property
    def shown_level(self) -> str:
        """Who follows the events needs no progress bar."""
        return self.log_level if self.on_event is None else "ERROR"

    @property
    def objects(self) -> dict[str, Any]:
        """What a job gets beside its config."""
        objects: dict[str, Any] = {"is_cancelled": self.is_cancelled}
        if self.on_event is not None:
            objects["listener"] = _Listener(self.on_event)
        return objects

    def select(self, statement: WithSelect) -> Rows:
        """The rows of a statement's SELECT."""
        try:
            return self.database.select(statement.select)
        except UserError as error:
            raise in_select(statement, error) from error

    def find(self, word: Word) -> Version:
        """The model that a statement names."""
        try:
            return self.registry.find(str(word))
        except ElasticDLError as error:
            raise at(word, error) from error

    @contextlib.contextmanager
    def job(self) -> Iterator[Path]:
        """The time of a job, and a directory for it that is removed."""
        if not _JOBS.acquire(blocking=False):
            self.tell("Waiting for another training or prediction to end.")
            while not _JOBS.acquire(timeout=0.2):
                if self.is_cancelled():
                    raise Stopped("The statement was cancelled while it waited.")
        try:
            with tempfile.TemporaryDirectory(prefix="elasticdl-sql-", dir=self.spool) as directory:
                yield Path(directory)
        finally:
            _JOBS.release()
