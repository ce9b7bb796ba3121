"""The events of a run as lines for people, with search and level. Only those that are shown are read and understood."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from elasticdl.runtime.dashboard.columns import moment
from elasticdl.runtime.dashboard.digest import Event
from elasticdl.runtime.dashboard.hiding import hide, hide_fields
from elasticdl.runtime.dashboard.readings import LONGEST_KIND, Reading
from elasticdl.runtime.dashboard.shortening import shallow, short
from elasticdl.tracking import words
from elasticdl.tracking.lines import EventLines

__all__ = ["LEVELS", "Wanted", "event_text", "events_view", "level_of"]

LEVELS = ("debug", "info", "warning", "error")
_DEBUG = frozenset(("step", "epoch_audit", "worker_joined"))
_WARNING = frozenset(("warning", "worker_lost", "bad_task", "master_restarted"))
MOST = 1000
CHUNK = 5000
SEARCHES = 8
_WORD = re.compile("[a-z]{2,}")
_OF_STEPS = b"epoch step loss not number examples none true false hidden"
"""What is in the words for a step, but not in its line."""
_MOMENT = 20
"""How long the time is that begins a line."""


@dataclass(frozen=True)
class Wanted:
    """Which events to tell: the last `limit` of those that fit."""

    after: int | None = None
    before: int | None = None
    limit: int = 200
    search: str = ""
    level: str = "debug"
    kind: str = ""


def events_view(reading: Reading, wanted: Wanted) -> dict[str, Any]:
    """The events that fit, in order. With `after` the first of them from there on, else the last."""
    fitting = _fitting(reading, wanted)
    limit = min(max(wanted.limit, 1), MOST)
    if wanted.search:
        found = set(_found(reading, wanted.search.casefold()))
        fitting = [n for n in fitting if n in found]
    chosen = fitting[:limit] if wanted.after is not None else fitting[-limit:]
    return {
        "events": _shown(reading, chosen),
        "total": reading.total,
        "matched": len(fitting),
        "broken_lines": reading.broken,
        "kinds": list(reading.kinds),
    }


def level_of(event: Event) -> str:
    """How much an event matters."""
    kind = event["event"]
    if kind == "run_ended":
        return {"failed": "error", "completed": "info", "stopped": "info"}.get(
            str(event.get("status")), "warning"
        )
    return _level_of_kind(kind)


def _level_of_kind(kind: str) -> str:
    if kind in _WARNING:
        return "warning"
    return "debug" if kind in _DEBUG else "info"


def _fitting(reading: Reading, wanted: Wanted) -> list[int]:
    """By kind, level and place, without reading a line."""
    least = LEVELS.index(wanted.level)
    fits = [
        (not wanted.kind or kind == wanted.kind)
        and (kind == "run_ended" or LEVELS.index(_level_of_kind(kind)) >= least)
        for kind in reading.kinds
    ]
    if not fits:
        return []
    of_kind = np.array(fits)[np.array(reading.kind_of)]
    numbers = np.flatnonzero(of_kind)
    if wanted.after is not None:
        numbers = numbers[numbers > wanted.after]
    if wanted.before is not None:
        numbers = numbers[numbers < wanted.before]
    found: list[int] = numbers.tolist()
    return [n for n in found if least == 0 or _end_fits(reading, n, least)]


def _end_fits(reading: Reading, number: int, least: int) -> bool:
    """A run's end matters as much as it is bad: that is in the line."""
    if reading.kinds[reading.kind_of[number]] != "run_ended":
        return True
    events = _parsed(reading, [number])
    return bool(events) and LEVELS.index(level_of(events[0][1])) >= least


def _found(reading: Reading, needle: str) -> list[int]:
    """The events with these words; of a search that goes on only the new ones are looked at."""
    begin, found = reading.searches.pop(needle, (0, []))
    words_ = [word.encode() for word in _WORD.findall(needle)]
    words_ = [word for word in words_ if word not in _OF_STEPS]
    for start in range(begin, reading.total, CHUNK):
        numbers = range(start, min(start + CHUNK, reading.total))
        for one in _shown(reading, _hopeful(reading, numbers, words_)):
            values = " ".join(str(value) for value in one["fields"].values())
            if needle in f"{one['event']} {one['text']} {values}".casefold():
                found.append(one["number"])
    reading.searches[needle] = (reading.total, found)
    if len(reading.searches) > SEARCHES:
        reading.searches.popitem(last=False)
    return found


def _hopeful(reading: Reading, numbers: Sequence[int], wanted: Sequence[bytes]) -> list[int]:
    """Without the steps whose bytes lack one of the words: most events are steps, and to tell one takes long."""
    if not wanted:
        return list(numbers)
    found = []
    for n, line in zip(numbers, reading.lines(list(numbers)), strict=True):
        is_step = reading.kinds[reading.kind_of[n]] == "step"
        if not is_step or all(word in line.lower() for word in wanted):
            found.append(n)
    return found


def _shown(reading: Reading, numbers: Sequence[int]) -> list[dict[str, Any]]:
    return [
        {
            "number": n,
            "time": moment(event),
            "event": short(event["event"], LONGEST_KIND),
            "level": level_of(event),
            "text": short(hide(event_text(reading, n, event))),
            "fields": {k: v for k, v in event.items() if k not in ("time", "event")},
        }
        for n, event in _safe(_parsed(reading, numbers))
    ]


def _safe(events: Sequence[tuple[int, Event]]) -> list[tuple[int, Event]]:
    """Without secrets, and without what is too large: the words are made of the same as the fields."""
    return [(n, shallow(hide_fields(event))) for n, event in events]


def _parsed(reading: Reading, numbers: Sequence[int]) -> list[tuple[int, dict[str, Any]]]:
    found = []
    for n, line in zip(numbers, reading.lines(list(numbers)), strict=True):
        try:
            event = json.loads(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError):  # the file was replaced a moment ago
            continue
        if isinstance(event, dict) and isinstance(event.get("event"), str):
            found.append((n, event))
    return found


def event_text(reading: Reading, number: int, event: Event) -> str:
    """An event in words, the same as in `elasticdl jobs logs`; where that says nothing, its fields."""
    change = reading.digest.changes.get(number)
    if change is not None:
        return words.changed(change)
    lines = EventLines()
    epochs = [e for at, e in reading.digest.epochs_from if at <= number]
    if epochs:
        lines.line({"event": "run_started", "num_epochs": epochs[-1]})
    line = lines.line(event)
    return line[_MOMENT:] if line else _plain(event)


def _plain(event: Event) -> str:
    kind, worker = event["event"], event.get("worker")
    if kind in ("worker_joined", "worker_left"):
        why = f": {event['reason']}" if "reason" in event else ""
        return f"{worker} {kind.removeprefix('worker_')}{why}"
    fields = (f"{k} {v}" for k, v in event.items() if k not in ("time", "event"))
    return "  ".join((kind.replace("_", " "), *fields))
