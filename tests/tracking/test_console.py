"""What a person reads while workers come and go."""

from __future__ import annotations

import io
from typing import Any

import pytest

from elasticdl.tracking.console import LiveProgress, OnlyWarnings, PlainProgress

NAMES = [f"worker-{n}" for n in range(6)]


def started(step: int = 0) -> dict[str, Any]:
    return {
        "event": "run_started",
        "command": "train",
        "records": 100,
        "num_epochs": 3,
        "step": step,
    }


def progress(step: int, **fields: Any) -> dict[str, Any]:
    numbers = {"epoch": 0, "loss": 0.5, "examples": 40, "examples_per_s": 1200.0}
    return {"event": "progress", "step": step, **numbers, **fields}


def waiting(message: str) -> dict[str, Any]:
    return {"event": "waiting", "message": message}


def joined(name: str) -> dict[str, Any]:
    return {"event": "worker_joined", "worker": name, "pid": 1, "node": "a"}


def lost(name: str, reason: str = "it does not answer") -> dict[str, Any]:
    return {"event": "worker_lost", "worker": name, "reason": reason}


def formed(step: int, *members: str, **fields: Any) -> dict[str, Any]:
    event = {"event": "group_formed", "members": list(members), "step": step, "stall_s": 0.5}
    return {**event, **fields}


def lines(*events: dict[str, Any]) -> list[str]:
    screen = io.StringIO()
    plain = PlainProgress(screen)
    for number, event in enumerate(events):
        plain.receive({"time": float(number), **event})
    return screen.getvalue().splitlines()


def test_start_says_what_is_waited_for_once() -> None:
    ready = "Waiting for workers: 1 of 3 ready"
    shown = lines(waiting("Starting Ray"), waiting(ready), waiting(ready), started())
    assert shown == ["Starting Ray ...", f"{ready} ..."]


def test_first_group_is_told_without_a_stall() -> None:
    first = formed(0, *NAMES[:2])
    assert lines(joined(NAMES[0]), joined(NAMES[1]), started(), first) == [
        "2 workers train: worker-0, worker-1"
    ]
    assert lines(formed(0, *NAMES)) == ["6 workers train: worker-0, worker-1, worker-2 and 3 more"]


def test_change_says_who_why_how_many_and_how_long() -> None:
    shown = lines(
        formed(0, *NAMES[:2]),
        lost(NAMES[1]),
        formed(70, NAMES[0], redone=1),
        joined(NAMES[2]),
        formed(90, NAMES[0], NAMES[2], stall_s=0.125, redone=0),
    )
    assert shown[1:] == [
        "worker-1 was lost: it does not answer",
        "worker-1 lost: 1 worker goes on at step 70 after 0.50 s, 1 step to be done again",
        "worker-2 joined: 2 workers go on at step 90 after 0.12 s",
    ]


def test_loss_of_all_tells_the_step_that_is_gone_back_to() -> None:
    shown = lines(
        formed(0, *NAMES[:2]),
        {**progress(70), "time": 5.0},
        {**lost(NAMES[0]), "time": 5.0},
        {**lost(NAMES[1]), "time": 5.5},
        {"time": 24.0, "event": "run_started", "step": 40},
        {**formed(40, *NAMES[2:4]), "time": 25.0},
    )
    assert shown[-1] == (
        "worker-0, worker-1 lost: 2 workers go on at step 40 after 20.00 s, "
        "30 steps to be done again"
    )


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ("1", "4", "scaling from 1 worker to 4 workers"),
        ("4", "2:4", "scaling from 4 workers to 2 to 4 workers"),
    ],
)
def test_scaling_is_told(before: str, after: str, line: str) -> None:
    assert lines({"event": "scaled", "num_workers": after, "before": before}) == [line]


def test_master_that_came_back_is_told() -> None:
    (line,) = lines({"event": "master_restarted", "pid": 77})
    assert line == "the master was lost and is back, as process 77"


def test_progress_has_the_number_of_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elasticdl.tracking.console.PLAIN_EVERY_S", -1.0)
    assert lines(started(), progress(3, workers=2))[0].endswith("1,200 examples/s  2 workers")
    assert lines(started(), progress(3, workers=1))[0].endswith("  1 worker")
    assert lines(started(), progress(3))[0].endswith("1,200 examples/s")


def test_terminal_shows_waiting_bar_and_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    screen = io.StringIO()
    live = LiveProgress(screen)
    events = [
        waiting("Starting Ray"),
        waiting("Waiting for workers: 1 of 2 ready"),
        started(),
        formed(0, *NAMES[:2]),
        progress(3, workers=2),
        lost(NAMES[0]),
        lost(NAMES[1]),
        waiting("Waiting for workers: 0 of 2 ready"),
        started(),
        formed(0, *NAMES[2:4]),
        progress(5, workers=2),
    ]
    for number, event in enumerate(events):
        live.receive({"time": float(number), **event})
    live.close()
    live.close()
    shown = screen.getvalue()
    for words in ("1 of 2 ready", "2 workers", "was lost", "after", "go on"):
        assert words in shown


def test_warnings_alone_have_losses() -> None:
    screen = io.StringIO()
    only = OnlyWarnings(screen)
    for event in (waiting("Starting Ray"), lost(NAMES[1]), formed(0, NAMES[0])):
        only.receive({"time": 0.0, **event})
    assert screen.getvalue() == "Warning: worker-1 was lost: it does not answer\n"
