"""What events say to MLflow: metrics, tags, files and a status, under names that it takes. Pure."""

from __future__ import annotations

import math
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

__all__ = ["Epochs", "Record", "batches", "cut", "mended", "mended_names", "record_of"]

MAX_NAME = 250
MAX_VALUE = 6000
MAX_BATCH = 100
MAX_BATCH_BYTES = 150_000
"""MLflow takes a million bytes; a character of a value may be six in JSON."""

STATUSES = {
    "completed": "FINISHED",
    "stopped": "FINISHED",
    "interrupted": "KILLED",
    "preempted": "KILLED",
    "failed": "FAILED",
}
_NO_METRICS = {"time", "event", "epoch", "step"}
_WORDS = {"@": "_at_", "%": "_percent_", "&": "_and_", "+": "_plus_", "=": "_is_", "<": "_below_"}
_WORDS[">"] = "_above_"


@dataclass(frozen=True)
class Record:
    """What one event adds to the training run, or to that of the evaluation."""

    time_ms: int
    step: int = 0
    metrics: Mapping[str, float] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    files: Sequence[str] = ()
    folder: str = ""
    status: str = ""
    is_epoch: bool = False
    is_evaluation: bool = False

    def without(self, known: Mapping[str, float]) -> Record:
        """Without the metrics that have these very values: a report that came out the same is no news."""
        news = {name: value for name, value in self.metrics.items() if known.get(name) != value}
        return replace(self, metrics=news)


def record_of(event: Mapping[str, Any]) -> Record | None:
    """None for an event that MLflow is not told of."""
    time_ms = round(1000 * event.get("time", 0))
    kind = event.get("event")
    if kind == "run_started":
        return Record(time_ms, status="RUNNING")
    if kind == "epoch":
        metrics = _metrics(event, _NO_METRICS)
        return Record(time_ms, step=int(event["epoch"]), metrics=metrics, is_epoch=True)
    if kind == "exported":
        told = {
            f"exported.{name}": event.get(name) for name in ("metric", "value", "epoch", "step")
        }
        tags = {name: str(value) for name, value in told.items() if value is not None}
        return Record(time_ms, tags=tags, files=[event["path"]], folder="exported")
    if kind == "report":
        return _report(event, time_ms)
    if kind == "run_ended":
        return Record(time_ms, status=STATUSES.get(str(event.get("status")), "FAILED"))
    return None


def _report(event: Mapping[str, Any], time_ms: int) -> Record:
    name = str(event["name"])
    metrics = {f"{name}_{key}": value for key, value in event.get("metrics", {}).items()}
    return Record(
        time_ms,
        metrics=_metrics(metrics, set()),
        files=list(event.get("files", ())),
        folder="reports",
        is_evaluation=name == "test",
        status="FINISHED" if name == "test" else "",
    )


def _metrics(fields: Mapping[str, Any], without: set[str]) -> dict[str, float]:
    numbers = {
        name: float(value)
        for name, value in fields.items()
        if name not in without
        and isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
    }
    return dict(zip(mended_names(numbers), numbers.values(), strict=True))


class Epochs:
    """Tells which epochs are news. An epoch that is trained again after a resume is none.

    One that is trained again from the very start is, unless it came out the same.
    """

    def __init__(self) -> None:
        self._start = 0
        self._seen: dict[int, tuple[int, dict[str, Any]]] = {}

    def is_news(self, event: Mapping[str, Any]) -> bool:
        """To be asked of every event of the file, in order."""
        if event.get("event") == "run_started":
            if event.get("step") == 0 and event.get("command") not in ("evaluate", "export"):
                self._start += 1
            return True
        if event.get("event") != "epoch":
            return True
        values = {name: value for name, value in event.items() if name != "time"}
        earlier = self._seen.get(event["epoch"])
        if earlier is not None and (earlier[0] == self._start or earlier[1] == values):
            return False
        self._seen[event["epoch"]] = (self._start, values)
        return True


def mended(name: str) -> str:
    """The name as MLflow takes it; one that it takes is left as it is.

    >>> mended("precision@5"), mended("f1 (macro)"), mended("../a//b")
    ('precision_at_5', 'f1_macro', 'a/b')
    """
    if (
        re.fullmatch(r"[/\w.\- :]+", name)
        and posixpath.normpath(name) == name
        and name[0] not in "./"
    ):
        return name[:MAX_NAME].rstrip("/")
    for sign, word in _WORDS.items():
        name = name.replace(sign, word)
    name = re.sub(r"[^/\w.\- :]", "_", name)
    parts = [re.sub(r"[ _]*_[ _]*", "_", part).strip("_ ") for part in name.split("/")]
    return "/".join(part for part in parts if part.strip("."))[:MAX_NAME].rstrip("/") or "_"


def mended_names(names: Iterable[str]) -> list[str]:
    """Each as MLflow takes it, and no two the same."""
    taken: list[str] = []
    for name in names:
        candidate, number = mended(name), 1
        while candidate in taken:
            number += 1
            candidate = f"{mended(name)[: MAX_NAME - 4]}_{number}"
        taken.append(candidate)
    return taken


def cut(value: str, limit: int = MAX_VALUE) -> str:
    return value if len(value) <= limit else value[: limit - 3] + "..."


def batches(items: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Parameters or tags in as many parts as MLflow takes at once."""
    part: dict[str, str] = {}
    size = 0
    for name, value in items.items():
        more = len(name) + len(value)
        if part and (len(part) == MAX_BATCH or size + more > MAX_BATCH_BYTES):
            yield part
            part, size = {}, 0
        part[name] = value
        size += more
    if part:
        yield part
