"""What became of a run, made of its events: nothing here runs."""

from __future__ import annotations

from typing import Any

import pytest
from written_runs import ELASTIC, TRAIN, ended, formed, joined, lost, started, step

from elasticdl.artifacts.hold import Holder
from elasticdl.runtime.jobs.account import Account, account_of

HERE = Holder("here", 7, 90.0)


def account(*events: dict[str, Any], job: Any = TRAIN, holder: Holder | None = None) -> Account:
    return account_of("digits-1", "elasticdl_runs/digits-1", job, events, holder)


def test_a_run_that_is_held_is_running_with_its_last_numbers() -> None:
    evaluation = {"event": "evaluation", "time": 103.0, "step": 25, "metrics": {"loss": 0.4}}
    found = account(started(), step(102.0, 25), evaluation, step(110.0, 40, 1, 0.3), holder=HERE)
    assert (found.status, found.step, found.epoch, found.num_epochs) == ("running", 40, 2, 3)
    assert (found.loss, found.metrics) == (0.3, {"loss": 0.4})
    assert (found.started, found.ended, found.process) == (90.0, None, "process 7 on here")
    assert found.wanted is None


@pytest.mark.parametrize("status", ["completed", "stopped", "interrupted", "preempted", "failed"])
def test_a_run_ended_as_it_said(status: str) -> None:
    found = account(started(), ended(160.0, status))
    assert (found.status, found.said) == (status, status)
    assert (found.started, found.ended) == (100.0, 160.0)
    assert found.message == ("ValueError: no" if status == "failed" else None)


def test_a_run_that_nobody_holds_and_that_told_of_no_end_was_killed() -> None:
    found = account(started(), step(130.0, 25))
    assert (found.status, found.said, found.ended) == ("killed", "ended without a word", 130.0)


def test_a_run_that_has_told_nothing_yet_runs_since_it_was_held() -> None:
    found = account(holder=HERE)
    assert (found.status, found.started, found.step) == ("running", 90.0, None)


@pytest.mark.parametrize("first", [[ended(160.0, "interrupted")], [step(130.0, 25)]])
def test_only_the_last_go_of_a_resumed_run_counts(first: list[dict[str, Any]]) -> None:
    found = account(started(), *first, started(500.0, 25), ended(510.0))
    assert (found.step, found.ended, found.status) == (75, 510.0, "completed")
    assert found.started == 100.0  # when it was begun for the first time


def test_what_is_told_after_the_end_does_not_change_it() -> None:
    late = {"event": "warning", "time": 161.0, "message": "late"}
    found = account(started(), ended(160.0), late)
    assert (found.status, found.ended, found.warning) == ("completed", 160.0, "late")
    assert account(started(), ended(160.0), late, started(500.0)).status == "killed"
    assert account(started(), ended(160.0), late, joined(500.0, 0)).status == "killed"


def test_a_clock_that_was_set_back_gives_no_end_before_the_start() -> None:
    found = account(started(1000.0), ended(160.0))
    assert (found.started, found.ended) == (1000.0, 1000.0)


@pytest.mark.parametrize("time", [1e308, 10**400, -5.0, float("nan"), float("inf")])
def test_times_that_no_calendar_has_are_not_known(time: float) -> None:
    found = account(started(time), ended(time))
    assert (found.started, found.ended, found.status) == (None, None, "completed")


def test_numbers_beyond_measure_are_not_told() -> None:
    huge = 10**400
    metrics = {"event": "evaluation", "time": 102.0, "step": huge, "metrics": {"loss": huge}}
    found = account(started(), {**step(101.0, 5), "epoch": huge, "loss": huge}, metrics)
    assert (found.step, found.epoch, found.loss, found.metrics) == (5, None, None, {})


def test_workers_are_those_of_the_last_group_and_their_changes_are_told() -> None:
    events = [joined(99.0, 0), joined(99.5, 1), started(), formed(101.0, 0, 1)]
    events += [lost(120.0, 1), joined(121.0, 2), formed(122.0, 0, 2, step=40, stall_s=1.25)]
    scaled = {"time": 130.0, "event": "scaled", "num_workers": "3", "before": "2:4"}
    found = account(*events, job=ELASTIC, holder=HERE)
    assert (found.workers, found.wanted) == (("worker-0", "worker-2"), "2:4")
    assert found.changes == 1
    assert found.change is not None
    assert found.change.startswith("worker-1 lost, worker-2 joined: 2 workers go on at step 40")
    assert account(*events, scaled, job=ELASTIC, holder=HERE).wanted == "3"


def test_a_run_whose_workers_were_all_lost_is_one_run() -> None:
    events = [joined(99.0, 0), started(), formed(101.0, 0), lost(120.0, 0), joined(125.0, 1)]
    found = account(*events, started(126.0, 20), formed(127.0, 1, step=20), job=ELASTIC)
    assert found.started == 99.0
    assert found.workers == ("worker-1",)


@pytest.mark.parametrize(
    "event",
    [
        {"event": "step"},
        {"event": "step", "time": "now", "step": "x", "epoch": None, "loss": "low"},
        {"event": "group_formed", "members": 3},
        {"event": "worker_lost"},
        {"event": "evaluation", "metrics": ["loss"]},
        {"event": "run_started", "num_epochs": "many"},
        {"event": "something_new", "time": 1.0},
    ],
)
def test_events_of_another_form_do_no_harm(event: dict[str, Any]) -> None:
    assert account(started(), event, job=ELASTIC).status == "killed"
    assert account(event).status == "killed"
