"""A run's events, read while they are written, broken, cut short, replaced and gone."""

from __future__ import annotations

import json
import os
import shutil
import threading
from pathlib import Path

import fsspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from run_directories import append, ended, evaluation, line, started, step, whole_run, write_run
from upath import UPath

from elasticdl.artifacts.run_directory import RunDirectory
from elasticdl.errors import NotFound
from elasticdl.runtime.dashboard import remote
from elasticdl.runtime.dashboard import runs as runs_module
from elasticdl.runtime.dashboard.answers import to_json
from elasticdl.runtime.dashboard.digest import Digest
from elasticdl.runtime.dashboard.files import entries
from elasticdl.runtime.dashboard.readings import Reading
from elasticdl.runtime.dashboard.views import (
    Runs,
    Wanted,
    events_view,
    goodput,
    ledger,
    log_view,
    open_run,
    run_view,
    series,
    timeline,
)
from elasticdl.runtime.jobs.account import account_of
from elasticdl.runtime.jobs.find import account
from elasticdl.storage import is_local


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def pass_(self) -> None:
        self.now += 3600


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_new_events_are_read_when_time_has_passed(tmp_path: Path, clock: Clock) -> None:
    write_run(tmp_path / "run", [started(), step(1)])
    runs = Runs([str(tmp_path)], clock)
    (run,) = runs.all()
    assert run_view(run)["step"] == 1
    append(tmp_path / "run", step(2))
    assert run_view(runs.all()[0])["step"] == 1  # as it was seen a moment ago
    clock.pass_()
    assert run_view(runs.all()[0])["step"] == 2


def test_only_what_is_new_is_read(tmp_path: Path, clock: Clock) -> None:
    directory = write_run(tmp_path / "run", [started(), *(step(n) for n in range(1, 50))])
    runs = Runs([str(directory)], clock)
    (run,) = runs.all()
    version = run.version
    with (directory / "events.jsonl").open("r+b") as file:  # what was read is spoilt unseen
        file.seek(300)
        file.write(b"#" * 100)
    append(directory, step(50))
    clock.pass_()
    run.refresh()
    assert (run.reading.total, run.reading.broken) == (51, 0)
    assert run.version != version


def test_unchanged_run_keeps_its_version(tmp_path: Path, clock: Clock) -> None:
    run = open_run(str(write_run(tmp_path / "run", whole_run())))
    assert open_run(str(tmp_path / "run")).version == run.version


def test_half_a_line_is_read_when_it_is_whole(tmp_path: Path, clock: Clock) -> None:
    directory = write_run(tmp_path / "run", [started(), step(1)])
    runs = Runs([str(directory)], clock)
    whole = line(step(2))
    with (directory / "events.jsonl").open("a") as file:
        file.write(whole[:20])
        file.flush()
        (run,) = runs.all()
        assert (run.reading.total, run.reading.broken, run_view(run)["step"]) == (2, 0, 1)
        file.write(whole[20:])
    clock.pass_()
    run.refresh()
    assert (run.reading.total, run.reading.broken, run_view(run)["step"]) == (3, 0, 2)


def test_broken_lines_are_counted_and_told(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", [started()])
    bad = [b"{", b"[1, 2]", b"\xff\xfe\x00", b'{"event": 7}', b'{"no": "event"}', b"[" * 5000]
    with (directory / "events.jsonl").open("ab") as file:
        file.write(b"\n".join([*bad, b"", line(step(1)).encode()]))
    run = open_run(str(directory))
    assert (run.reading.broken, run_view(run)["step"]) == (len(bad), 1)
    assert run.problems == ["6 lines of events.jsonl cannot be understood and were left out."]


def test_replaced_file_is_read_from_its_begin(tmp_path: Path, clock: Clock) -> None:
    directory = write_run(tmp_path / "run", [started(), step(1)])
    runs = Runs([str(directory)], clock)
    (run,) = runs.all()
    write_run(directory, [started(5000.0), *(step(n, loss=7.0) for n in range(1, 30))])
    clock.pass_()
    run.refresh()
    assert run.reading.total == 30
    assert {point[2] for point in series(run.digest)[0]["points"]} == {7.0}


def test_directory_that_vanishes_is_no_run_any_more(tmp_path: Path, clock: Clock) -> None:
    directory = write_run(tmp_path / "runs" / "run", whole_run())
    runs = Runs([str(tmp_path / "runs")], clock)
    (run,) = runs.all()
    shutil.rmtree(directory)
    clock.pass_()
    with pytest.raises(NotFound, match="or no longer"):
        runs.get(run.id)
    assert runs.all() == []
    shutil.rmtree(tmp_path / "runs")
    clock.pass_()
    assert runs.all() == []
    assert "There is no directory" in runs.problems[0]["message"]
    write_run(directory, whole_run())
    clock.pass_()
    assert [one.id for one in runs.all()] == [run.id]


@pytest.mark.skipif(os.getuid() != 0, reason="needs another user to be kept out")
def test_directory_without_permission_hides_no_other(tmp_path: Path) -> None:
    write_run(tmp_path / "open", whole_run())
    write_run(tmp_path / "closed", whole_run()).chmod(0)
    child = os.fork()
    if child == 0:  # root may read all
        code = 1
        try:
            tmp_path.chmod(0o755)
            for parent in tmp_path.parents[:3]:
                parent.chmod(0o755)
            os.setuid(65534)
            runs = Runs([str(tmp_path)]).all()
            told = {run.name: run_view(run) for run in runs}
            is_told = "Permission denied" in told["closed"]["message"]
            code = 0 if is_told and told["open"]["status"] == "completed" else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_run_that_was_killed_is_told_as_such(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", [started(), step(1)])
    (directory / ".lock").write_text("{}")
    view = run_view(open_run(str(directory)))
    assert (view["status"], view["said"], view["is_live"]) == (
        "killed",
        "ended without a word",
        False,
    )


def test_run_that_is_held_is_live(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "run")
    with directory.held(resume=False, job={"command": "train"}):
        append(tmp_path / "run", started(), step(1))
        view = run_view(open_run(directory))
    assert (view["status"], view["is_live"]) == ("running", True)


def test_experiments_and_runs_below_a_project_are_found(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "project" / "runs" / "first", [started(), step(1)])
    (directory / "job.json").unlink()
    (directory / "config.yaml").write_text("epochs: 2\nexport:\n  metric: val_loss\n")
    (run,) = Runs([str(tmp_path / "project")]).all()
    assert (run.name, run_view(run)["command"]) == ("first", "run")
    assert run.job == {"epochs": 2, "export": {"metric": "val_loss"}}


def test_one_directory_given_twice_is_one_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(tmp_path / "run", whole_run())
    monkeypatch.chdir(tmp_path)
    assert len(Runs(["run", ".", str(tmp_path / "run"), f"file://{tmp_path}/run"]).all()) == 1


def test_account_of_what_is_kept_is_that_of_all_events(tmp_path: Path) -> None:
    events = [
        *whole_run(),
        started(step=9),
        *(step(n) for n in range(10, 40)),
        evaluation(39, loss=0.1),
    ]
    events += [{"time": 1.0, "event": "warning", "message": str(n)} for n in range(5)]
    for count in range(len(events)):
        digest = Digest()
        for event in events[:count]:
            digest.add(event)
        kept = account_of("n", "w", {}, digest.account_events, None)
        assert kept == account_of("n", "w", {}, events[:count], None)


def test_view_has_the_numbers_of_elasticdl_jobs(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", whole_run())
    view, told = run_view(open_run(str(directory))), account(RunDirectory(directory))
    assert (view["status"], view["step"], view["loss"]) == (told.status, told.step, told.loss)
    assert (view["workers"], view["warning"]) == (list(told.workers), told.warning)


def test_many_events_take_little_memory(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", [started(), *(step(n) for n in range(1, 20_001))])
    run = open_run(str(directory))
    assert len(run.digest.account_events) == 2
    assert run.reading.total == 20_001


def test_remote_runs_are_read_where_they_are(clock: Clock) -> None:
    fs = fsspec.filesystem("memory")
    root = "/dashboard-test"
    fs.pipe_file(f"{root}/one/job.json", b'{"command": "train"}')
    fs.pipe_file(f"{root}/one/events.jsonl", "".join(map(line, whole_run())).encode())
    fs.pipe_file(f"{root}/one/logs/worker-0.log", b"hello\n")
    try:
        runs = Runs([f"memory:/{root}"], clock)
        (run,) = runs.all()
        assert (run_view(run)["status"], run_view(run)["step"]) == ("completed", 21)
        assert log_view(run, "worker-0.log")["lines"] == [{"number": 1, "text": "hello"}]
        again = [*whole_run(), started(step=21), step(30)]
        fs.pipe_file(f"{root}/one/events.jsonl", "".join(map(line, again)).encode())
        clock.pass_()
        run.refresh()
        assert run_view(run)["step"] == 30
    finally:
        fs.rm(root, recursive=True)


def test_place_that_does_not_answer_hides_no_local_run(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "ANSWER_S", 0.05)
    write_run(tmp_path / "run", whole_run())
    runs = Runs([str(tmp_path)], clock)
    may_answer = threading.Event()
    look = runs_module._run_places

    def silent(root: UPath) -> list[UPath] | None:
        return look(root) if is_local(root) or may_answer.wait(60) else None

    monkeypatch.setattr(runs_module, "_run_places", silent)
    runs.add("memory://silent-test")
    try:
        for _ in range(2):
            assert [run.name for run in runs.all()] == ["run"]
            assert "does not answer" in runs.problems[0]["message"]
            clock.pass_()
    finally:
        may_answer.set()


def test_runs_in_a_bucket_are_read(bucket: str, clock: Clock) -> None:
    fs = fsspec.filesystem("s3")
    path = f"{bucket.removeprefix('s3://')}/runs/one"
    fs.pipe_file(f"{path}/job.json", b'{"command": "train"}')
    fs.pipe_file(f"{path}/events.jsonl", "".join(map(line, whole_run())).encode())
    runs = Runs([f"{bucket}/runs", f"{bucket}/nothing"], clock)
    (run,) = runs.all()
    assert (run.address, run_view(run)["status"]) == (f"{bucket}/runs/one", "completed")
    found = events_view(run.reading, Wanted(kind="worker_lost"))["events"]
    assert [one["fields"]["worker"] for one in found] == ["worker-1"]
    append_to = [*whole_run(), started(step=21), step(30)]
    fs.pipe_file(f"{path}/events.jsonl", "".join(map(line, append_to)).encode())
    clock.pass_()
    run.refresh()
    assert run_view(run)["step"] == 30


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=5,
)
_kinds = st.sampled_from(sorted({event["event"] for event in whole_run()} | {"scaled", "other"}))
_names = st.sampled_from(sorted({name for event in whole_run() for name in event} - {"event"}))
_events = st.builds(
    lambda kind, fields, base: {**base, **fields, "event": kind},
    _kinds,
    st.dictionaries(_names | st.just("tasks") | st.just("by_worker"), _values, max_size=4),
    st.sampled_from(whole_run()),
)


@settings(max_examples=80, deadline=None)
@given(events=st.lists(_events, max_size=12))
def test_fields_of_any_form_do_no_harm(
    tmp_path_factory: pytest.TempPathFactory, events: list
) -> None:
    directory = tmp_path_factory.mktemp("any") / "run"
    run = open_run(str(write_run(directory, [*whole_run()[:-1], *events, ended(99)])))
    views = [
        run_view(run),
        series(run.digest),
        series(run.digest, x="time"),
        timeline(run.digest, is_live=run.is_live),
        ledger(run.digest),
        goodput(run.digest),
        events_view(run.reading, Wanted(limit=1000)),
        events_view(run.reading, Wanted(search="worker", level="warning")),
    ]
    for view in views:
        json.loads(to_json(view))


def test_huge_file_is_read_in_parts(tmp_path: Path) -> None:
    events = [started(), *(step(n) for n in range(1, 100_001))]
    directory = write_run(tmp_path / "run", events)
    entry = entries(UPath(directory), UPath(directory))["events.jsonl"]
    reading = Reading(UPath(directory / "events.jsonl"), UPath(directory), at_once=1)
    looks = 0
    while reading.read < 1 or not looks:
        assert reading.update(entry)
        looks += 1
    assert looks > 1
    assert (reading.total, reading.broken) == (len(events), 0)
    assert not reading.update(entry)
