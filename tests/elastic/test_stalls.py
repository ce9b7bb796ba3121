"""The closing table of a run whose group changed, made of its events."""

from __future__ import annotations

from typing import Any

import pytest

from elasticdl.runtime.elastic.stalls import MOST, Stalls


def joined(time: float, *numbers: int) -> list[dict[str, Any]]:
    return [
        {"time": time, "event": "worker_joined", "worker": f"worker-{n}", "pid": n, "node": "a"}
        for n in numbers
    ]


def lost(time: float, number: int, reason: str = "its process was killed") -> dict[str, Any]:
    return {"time": time, "event": "worker_lost", "worker": f"worker-{number}", "reason": reason}


def formed(time: float, step: int, *numbers: int, **fields: Any) -> dict[str, Any]:
    members = [f"worker-{n}" for n in numbers]
    event = {"time": time, "event": "group_formed", "members": members, "step": step}
    return {**event, "stall_s": 0.5, **fields}


def step(time: float, number: int) -> dict[str, Any]:
    return {"time": time, "event": "step", "step": number, "epoch": 0, "loss": 1.0}


def told(*events: Any) -> Stalls:
    stalls = Stalls()
    for event in events:
        for one in event if isinstance(event, list) else [event]:
            stalls.heard(one)
    return stalls


FIRST = [*joined(10.0, 0, 1, 2), formed(10.0, 0, 0, 1, 2, stall_s=4.0)]


def test_first_group_is_no_stall() -> None:
    stalls = told(FIRST, step(30.0, 100))
    assert stalls.facts == ()
    assert stalls.goodput == 1


def test_table_has_a_line_for_each_change_a_total_and_the_goodput() -> None:
    stalls = told(
        FIRST,
        lost(14.0, 1, "it does not answer"),
        formed(15.0, 100, 0, 2, stall_s=1.5, redone=1),
        joined(19.5, 3),
        formed(20.0, 665, 0, 2, 3, redone=0),
        step(30.0, 900),
    )
    assert stalls.facts == (
        ("stall at step 100", "1.50 s  2 workers  worker-1 lost (it does not answer)"),
        ("stall at step 665", "0.50 s  3 workers  worker-3 joined"),
        ("stalls", "2 changes, 2.00 s in all, 1.50 s the longest, 1 step done again"),
        ("goodput", "90.0% of 20.0 s"),
    )


def test_table_of_one_change_speaks_of_one() -> None:
    facts = dict(told(FIRST, lost(14.0, 1), lost(14.0, 2), formed(15.0, 7, 0, redone=1)).facts)
    assert facts["stalls"] == "1 change, 0.50 s in all, 1 step done again"
    assert "1 worker " in facts["stall at step 7"]


def test_loss_of_all_stalls_from_the_loss_and_throws_away_what_was_not_saved() -> None:
    stalls = told(
        FIRST,
        {"time": 20.0, "event": "checkpoint", "step": 50, "path": "x", "occasion": "steps"},
        step(22.0, 60),
        lost(24.0, 0),
        lost(24.1, 1),
        lost(24.2, 2),
        joined(40.0, 3, 4),
        {"time": 40.1, "event": "run_started", "step": 50},
        formed(44.0, 50, 3, 4, stall_s=0.7),
        step(60.0, 200),
    )
    (change,) = stalls.changes
    assert change.stall_s == pytest.approx(20.0)
    assert change.redone == 10
    assert stalls.goodput == pytest.approx(1 - (20 + 4) / 50)


def test_newcomer_that_is_left_with_the_state_throws_nothing_away() -> None:
    """It took over, and who gave was lost before they had taken a step together."""
    stalls = told(
        FIRST,
        step(19.0, 60),
        joined(20.0, 3),
        [lost(20.1, n) for n in range(3)],
        formed(21.0, 61, 3, stall_s=0.9, redone=1),
        step(30.0, 200),
    )
    (change,) = stalls.changes
    assert (change.stall_s, change.redone, change.went_back) == (0.9, 1, False)
    assert stalls.goodput == pytest.approx(1 - 0.9 / 20)


def test_worker_that_left_or_never_trained_is_told_as_that() -> None:
    stalls = told(FIRST, lost(11.0, 7), formed(15.0, 30, 0, 1, redone=0))
    assert [change.why for change in stalls.changes] == ["worker-2 left"]


def test_table_of_many_changes_is_short() -> None:
    stalls = told(FIRST, [formed(20.0 + n, n, 0, 1, redone=0) for n in range(MOST + 5)])
    assert len(stalls.facts) == MOST + 3
    assert ("...", "5 more in events.jsonl") in stalls.facts
