"""`elasticdl scale`: a wish in the run directory, and a run that hears it. Its events are written by hand."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from upath import UPath

from elasticdl.artifacts.run_directory import RunDirectory
from elasticdl.cli.main import main
from elasticdl.errors import InvalidValue, NotFound, RunError
from elasticdl.job.parse import workers_text
from elasticdl.runtime.elastic.scaling import ANSWER_S, SCALE_FILE, ScaleWish, ask
from elasticdl.runtime.jobs.find import find_run

ELASTIC = {"command": "train", "distribution_strategy": "AllreduceStrategy", "num_workers": "2"}


def write_run(
    where: str | Path, *events: dict[str, Any], job: dict[str, Any] = ELASTIC
) -> RunDirectory:
    directory = RunDirectory(str(where))
    directory.path.mkdir(parents=True, exist_ok=True)
    directory.job.write_text(json.dumps(job))
    tell(directory, {"event": "run_started"}, *events)
    return directory


def tell(directory: RunDirectory, *events: dict[str, Any]) -> None:
    """What the run appends to its events."""
    before = directory.events.read_text() if directory.events.exists() else ""
    lines = [json.dumps({"time": 1.0, **event}) + "\n" for event in events]
    directory.events.write_text(before + "".join(lines))


class Seconds:
    """A clock that goes by one second each time it is waited for, and a run that acts meanwhile."""

    def __init__(self, run: Callable[[], None] = lambda: None) -> None:
        self.now = 0.0
        self._run = run

    def wait(self, _: float) -> None:
        self.now += 1
        self._run()

    def __call__(self) -> float:
        return self.now


def hears(directory: RunDirectory, wishes: ScaleWish) -> Callable[[], None]:
    """A run that looks for a wish and tells that it heard it."""

    def look() -> None:
        if wish := wishes.poll():
            tell(directory, {"event": "scaled", "num_workers": workers_text(wish), "before": "2"})

    return look


def scale(directory: RunDirectory, workers: tuple[int, int], time: Seconds) -> dict[str, Any]:
    return ask(directory, workers, wait=time.wait, clock=time)


@pytest.mark.parametrize("where", ["run", "memory://scale/run"])
def test_a_run_that_hears_the_wish_answers(where: str) -> None:
    directory = write_run(where)
    time = Seconds()
    wishes = ScaleWish(directory.path, clock=time)
    time._run = hears(directory, wishes)
    assert scale(directory, (4, 4), time)["num_workers"] == "4"
    assert scale(directory, (2, 5), time)["num_workers"] == "2:5"
    assert wishes.poll() is None


def test_an_answer_to_an_earlier_wish_is_not_taken_for_one() -> None:
    directory = write_run("run", {"event": "scaled", "num_workers": "3", "before": "1"})
    time = Seconds(hears(directory, ScaleWish(directory.path)))
    assert scale(directory, (4, 4), time)["num_workers"] == "4"


def test_who_is_overtaken_by_another_wish_is_told_so() -> None:
    directory = write_run("run")
    wishes = ScaleWish(directory.path)

    def another() -> None:
        if wishes.poll():
            tell(directory, {"event": "scaled", "num_workers": "1:1", "before": "2"})

    with pytest.raises(RunError, match="Somebody else asked for 1:1 workers at the same moment"):
        scale(directory, (2, 3), Seconds(another))


def test_a_run_that_does_not_answer_is_given_up_and_the_wish_taken_back() -> None:
    directory = write_run("run")
    time = Seconds()
    with pytest.raises(RunError, match=r"did not answer within 30 s.* Nothing was changed"):
        scale(directory, (4, 4), time)
    assert time.now == ANSWER_S
    assert not (directory.path / SCALE_FILE).exists()


def test_a_run_that_has_ended_is_refused() -> None:
    directory = write_run("run", {"event": "run_ended", "status": "completed"})
    with pytest.raises(
        InvalidValue, match=r"has ended \(completed\)\. Go on with it with --resume"
    ):
        scale(directory, (4, 4), Seconds())
    assert not (directory.path / SCALE_FILE).exists()


def test_a_run_that_was_resumed_has_not_ended() -> None:
    ended, resumed = {"event": "run_ended", "status": "interrupted"}, {"event": "run_started"}
    directory = write_run("run", ended, resumed)
    time = Seconds(hears(directory, ScaleWish(directory.path)))
    assert scale(directory, (4, 4), time)["before"] == "2"


def test_a_run_that_ends_meanwhile_is_said_to_have_ended() -> None:
    directory = write_run("run")
    time = Seconds(lambda: tell(directory, {"event": "run_ended", "status": "failed"}))
    with pytest.raises(InvalidValue, match=r"has ended \(failed\)"):
        scale(directory, (4, 4), time)
    assert not (directory.path / SCALE_FILE).exists()


def test_a_run_in_one_process_is_refused() -> None:
    directory = write_run("run", job={"command": "train"})
    with pytest.raises(InvalidValue, match="has no workers: it runs in one process"):
        scale(directory, (4, 4), Seconds())


def test_a_line_that_is_being_written_is_no_answer_yet() -> None:
    directory = write_run("run")
    whole = directory.events.read_text()
    directory.events.write_text(whole + '{"time": 1.0, "event": "sca')
    with pytest.raises(RunError, match="did not answer"):
        scale(directory, (4, 4), Seconds())


def test_the_newest_run_of_a_name_is_meant() -> None:
    for number, age in ((1, 100), (2, 50), (10, 200)):
        directory = write_run(f"elasticdl_runs/digits-{number}")
        os.utime(str(directory.job), (10_000 - age, 10_000 - age))
    write_run("elasticdl_runs/digits-more-1")
    assert find_run("digits").path.name == "digits-2"
    assert find_run("elasticdl_runs/digits-1").path.name == "digits-1"


def test_an_unknown_run_is_named() -> None:
    with pytest.raises(NotFound, match=r"There is no run 'digits'.* Give the --output of the run"):
        find_run("digits")


def test_a_wish_that_was_there_before_is_none(tmp_path: Path) -> None:
    (tmp_path / SCALE_FILE).write_text('{"num_workers": "4"}')
    assert ScaleWish(str(tmp_path)).poll() is None


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"num_workers": "no"}'])
def test_a_wish_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    wishes = ScaleWish(str(tmp_path))
    (tmp_path / SCALE_FILE).write_text(text)
    assert wishes.poll() is None


def test_a_remote_address_is_looked_at_every_five_seconds() -> None:
    time = Seconds()
    where = UPath("memory://scale/often")
    where.mkdir(parents=True, exist_ok=True)
    wishes = ScaleWish(where, clock=time)
    (where / SCALE_FILE).write_text('{"num_workers": "2:4"}')
    seen = []
    for _ in range(6):
        seen.append(wishes.poll())
        time.wait(1)
    assert seen == [None, None, None, None, None, (2, 4)]


def test_the_command_says_what_changes(capsys: pytest.CaptureFixture[str]) -> None:
    directory = write_run("elasticdl_runs/digits-1")
    wishes, ended = ScaleWish(directory.path), threading.Event()

    def run() -> None:
        while not ended.wait(0.01):
            if wish := wishes.poll():
                asked = workers_text(wish)
                tell(directory, {"event": "scaled", "num_workers": asked, "before": "2"})

    running = threading.Thread(target=run)
    running.start()
    try:
        with directory.held(resume=True, job={}):
            assert main(["scale", "digits", "--num-workers=4"]) == 0
    finally:
        ended.set()
        running.join()
    assert capsys.readouterr().out == "scaling from 2 to 4 workers\n"
    assert json.loads((directory.path / SCALE_FILE).read_text())["num_workers"] == "4"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["run", "--num_workers=4:2"], "Invalid num_workers '4:2': the minimum 4 is above"),
        (["run"], "--num_workers"),
        (["nowhere", "--num_workers=4"], "There is no run 'nowhere'"),
    ],
)
def test_the_command_refuses_what_makes_no_sense(
    args: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["scale", *args]) == 2
    assert said in capsys.readouterr().err
