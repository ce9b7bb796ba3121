"""`mlflow.json` of a run directory: which MLflow run it is, and how much of events.jsonl is there."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from upath import UPath

from elasticdl.errors import StorageFailure
from elasticdl.storage import place, write_file

__all__ = ["State", "Tracked", "read_run_id", "read_state", "write_state"]

VERSION = 1


@dataclass(frozen=True)
class Tracked:
    """What is tracked, and where: all that the process that sends has to know."""

    run_directory: str
    events: str
    address: str
    experiment: str
    run_name: str
    params: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Tracked:
        return cls(**json.loads(text))

    @property
    def directory(self) -> UPath:
        return place(self.run_directory)


@dataclass(frozen=True)
class State:
    """How far one history of events has come at one address.

    `key` is a tag of the MLflow runs, by which one that was made just before a crash is found again.
    """

    address: str
    experiment: str
    run_name: str
    first_event: str
    key: str = field(default_factory=lambda: uuid.uuid4().hex)
    run_id: str = ""
    evaluation_run_id: str = ""
    lines_sent: int = 0

    def is_about_the_same(self, other: State) -> bool:
        return (self.address, self.experiment, self.run_name, self.first_event) == (
            other.address,
            other.experiment,
            other.run_name,
            other.first_event,
        )


def read_state(directory: UPath) -> State | None:
    """What an earlier run left; None when there is nothing that can be used."""
    content = _read(directory / "mlflow.json")
    try:
        fields: dict[str, Any] = json.loads(content)
        if fields.pop("version") != VERSION:
            return None
        return State(**fields)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def write_state(directory: UPath, state: State) -> None:
    content = json.dumps({"version": VERSION, **asdict(state)}, indent=2) + "\n"
    write_file(directory / "mlflow.json", content.encode())
    if state.run_id and read_run_id(directory) != state.run_id:
        write_file(directory / "run_id.txt", state.run_id.encode())


def read_run_id(directory: UPath) -> str:
    return _read(directory / "run_id.txt").strip()


def _read(where: UPath) -> str:
    try:
        return str(where.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, StorageFailure):
        return ""
