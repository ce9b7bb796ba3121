"""`elasticdl jobs` on run directories that were written by hand; one that is held here is one that runs."""

from __future__ import annotations

import json
import os
import platform
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest
from written_runs import ELASTIC, TRAIN, ended, lines, started, step, write_run

from elasticdl.artifacts.hold import Hold
from elasticdl.artifacts.run_directory import RunDirectory
from elasticdl.cli.jobs import jobs
from elasticdl.cli.main import main
from elasticdl.errors import InvalidValue, NotFound
from elasticdl.runtime.jobs.find import account, find_run, list_runs
from elasticdl.runtime.jobs.jobs import Left
from elasticdl.runtime.jobs.logs import log_lines
from elasticdl.runtime.jobs.stop import stop, wait_for

WAITING = "Waiting for its checkpoint ..."


@contextmanager
def running(directory: RunDirectory) -> Iterator[RunDirectory]:
    """As a process holds it that trains."""
    with directory.held(resume=True, job={}):
        yield directory


def append(directory: RunDirectory, text: str) -> None:
    with Path(str(directory.events)).open("a") as file:
        file.write(text)


# --- who holds a directory ---


@pytest.mark.parametrize("where", ["run", "memory://jobs/held"])
def test_who_holds_a_directory_is_known(where: str) -> None:
    directory = write_run(where)
    assert directory.holder is None
    with running(directory):
        holder = RunDirectory(where).holder
        assert holder is not None
        assert holder.process == os.getpid()
        assert holder.since > 1.7e9
    assert directory.holder is None


def test_who_looks_at_a_lock_does_not_spoil_it() -> None:
    with running(write_run("run")) as directory:
        for _ in range(2):
            with pytest.raises(FileExistsError, match="Another run is writing"):
                Hold(directory.path).take()
            assert directory.holder is not None and directory.holder.process == os.getpid()


def test_a_lock_that_a_killed_process_left_holds_nothing() -> None:
    directory = write_run("run", started())
    (directory.path / ".lock").write_text('{"host": "here", "process": 1, "time": 1, "since": 1}')
    assert directory.holder is None
    assert account(directory).status == "killed"


# --- which run is meant ---


def test_a_run_is_found_by_its_directory_its_name_and_its_job() -> None:
    write_run("elasticdl_runs/digits-1", ended(1.0))
    assert find_run("digits").path.name == "digits-1"
    assert find_run("digits-1").path.name == "digits-1"
    assert find_run("elasticdl_runs/digits-1").path.name == "digits-1"


def test_of_a_job_the_run_that_runs_is_meant_and_of_several_none() -> None:
    old, new = (write_run(f"elasticdl_runs/digits-{n}", started()) for n in (1, 2))
    os.utime(str(old.job), (1, 1))
    assert find_run("digits").path.name == "digits-2"
    with running(old):
        assert find_run("digits").path.name == "digits-1"
        with running(new), pytest.raises(InvalidValue, match="digits-1, digits-2"):
            find_run("digits")


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ("digts", "There is no run 'digts'.* Did you mean 'digits'"),
        ("digits-7", "Did you mean 'digits-1'"),
        ("data", "data is no run: it has neither job.json nor events.jsonl. Give the --output"),
        ("elasticdl_runs", "It holds the runs digits-1: name one of them"),
    ],
)
def test_an_unknown_run_is_told_with_the_nearest(job: str, said: str) -> None:
    write_run("elasticdl_runs/digits-1")
    Path("data").mkdir()
    with pytest.raises(NotFound, match=said):
        find_run(job)


# --- list and status ---


def test_runs_are_listed_newest_first(capsys: pytest.CaptureFixture[str]) -> None:
    write_run("elasticdl_runs/digits-1", started(100.0), step(130.0, 25), ended(160.0))
    write_run("elasticdl_runs/digits-2", started(4000.0), step(4010.0, 25))
    write_run("elasticdl_runs/digits-3", started(3000.0), ended(3001.0, "failed"))
    Path("elasticdl_runs/notes").mkdir()
    assert main(["jobs", "list"]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split()[:3] == ["name", "command", "status"]
    assert [row.split()[0] for row in rows] == ["digits-2", "digits-3", "digits-1"]
    assert "ended without a word  epoch 1/3, step 25" in rows[0]
    assert "failed" in rows[1]
    assert "completed" in rows[2] and "1 min 0 s" in rows[2]


def test_runs_elsewhere_are_listed_once_also_at_an_address() -> None:
    write_run("first", ended(10.0))
    write_run("more/second", ended(20.0))
    write_run("memory://jobs/listed/third", ended(30.0))
    found = list_runs(["more", "first", "more/second", "memory://jobs/listed"])
    assert [one.name for one in found] == ["memory://jobs/listed/third", "more/second", "first"]


def test_a_run_that_cannot_be_read_does_not_hide_the_others() -> None:
    write_run("elasticdl_runs/one-1", ended(10.0))
    broken = write_run("elasticdl_runs/two-1")
    broken.events.unlink()
    broken.events.mkdir()
    found = list_runs([])
    assert [(one.name, one.status) for one in found] == [
        ("one-1", "completed"),
        ("two-1", "unreadable"),
    ]
    assert found[1].message is not None and "Is a directory" in found[1].message


def test_an_experiment_is_a_run_of_its_own_command() -> None:
    directory = write_run("project/runs/baseline", started(), ended(160.0, "failed"), job=None)
    (directory.path / "config.yaml").write_text("")
    (found,) = list_runs(["project/runs"])
    assert (found.command, found.status) == ("run", "failed")


def test_json_is_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    write_run("elasticdl_runs/digits-1", started(), ended(160.0))
    assert main(["jobs", "list", "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert main(["jobs", "status", "digits", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == listed
    assert (listed["name"], listed["status"], listed["step"]) == ("digits-1", "completed", 75)


def test_numbers_that_are_none_are_null_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    nan = float("nan")
    told = {"event": "evaluation", "time": 120.0, "step": 25, "metrics": {"auc": nan}}
    write_run("elasticdl_runs/digits-1", started(), step(110.0, 25, loss=nan), told)
    for words in (["list"], ["status", "digits"]):
        assert main(["jobs", *words, "--json"]) == 0
        found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
        one = found[0] if isinstance(found, list) else found
        assert (one["loss"], one["metrics"], one["step"]) == (None, {"auc": None}, 25)


@pytest.mark.parametrize("moment", [1e300, -1e300, float("nan"), float("inf")])
def test_a_time_that_no_clock_has_is_told_as_unknown(
    moment: float, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run("elasticdl_runs/digits-1", started(moment), step(moment, 25), ended(160.0))
    shown = {}
    for command in ("list", "status", "logs"):
        words = [] if command == "list" else ["digits"]
        assert main(["jobs", command, *words]) == 0
        shown[command] = capsys.readouterr().out
    assert shown["list"].splitlines()[1].split()[-4:-1] == ["-", "-", "-"]
    assert "1970-01-01 00:02:40" not in shown["status"].partition("ended")[0]
    assert "?" in shown["logs"]
    assert main(["jobs", "list", "--json"]) == 0
    json.loads(capsys.readouterr().out, parse_constant=pytest.fail)


def test_no_runs_are_said_to_be_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jobs", "list"]) == 0
    assert capsys.readouterr().out == "There are no jobs in elasticdl_runs.\n"
    assert main(["jobs", "list", "nowhere"]) == 2
    assert "There is no directory nowhere" in capsys.readouterr().err


def test_status_says_how_far_it_is_and_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    warning = {"time": 1.0, "event": "warning", "message": "Look out."}
    directory = write_run("elasticdl_runs/digits-1", started(), step(1.0, 25, 1), warning)
    with running(directory):
        assert main(["jobs", "status", "digits"]) == 0
    shown = capsys.readouterr().out
    assert "epoch 2/3, step 25" in shown
    assert "Look out." in shown
    assert "elasticdl jobs stop digits-1" in shown
    assert main(["jobs", "status", "digits"]) == 0
    shown = capsys.readouterr().out
    assert "ended without a word" in shown
    assert "elasticdl train --resume --output=elasticdl_runs/digits-1" in shown


@pytest.mark.parametrize("text", ["", "{", "[]", '{"model_def": 3, "no_such_flag": 1}'])
def test_a_broken_description_leaves_the_rest(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = write_run("run", started(), ended(160.0))
    directory.job.write_text(text)
    append(directory, '\x00\xff{"time": 1, "eve')
    assert main(["jobs", "status", "run"]) == 0
    assert "completed" in capsys.readouterr().out


# --- logs ---


def test_logs_are_the_events_as_lines(capsys: pytest.CaptureFixture[str]) -> None:
    write_run("run", started(), step(130.0, 25), {"event": "new"}, ended(160.0, "failed"))
    assert main(["jobs", "logs", "run"]) == 0
    first, second, third = capsys.readouterr().out.splitlines()
    assert first.endswith("train digits begins with custom_model, 800 records")
    assert second.endswith("epoch 1/3  step 25  loss 0.5000  1,234 examples/s")
    assert third.endswith("failed: ValueError: no")
    assert main(["jobs", "logs", "run", "--tail=1"]) == 0
    assert capsys.readouterr().out == third + "\n"


def test_logs_are_followed_until_the_run_ends_and_half_a_line_is_waited_for() -> None:
    directory = write_run("run", started())
    hold, third = running(directory), lines(step(3.0, 3))
    actions: Iterator[Callable[[], object]] = iter(
        [
            lambda: append(directory, lines(step(2.0, 2)) + third[:20]),
            lambda: append(directory, third[20:]),
            lambda: (append(directory, lines(ended(9.0))), hold.__exit__(None, None, None)),
        ]
    )
    hold.__enter__()
    said = [
        line.split("  ")[-2 if "loss" in line else -1]
        for line in log_lines(
            directory, follow=True, tail=0, wait=lambda _: next(actions)() and None
        )
    ]
    assert len(said) == 3
    assert said[-1].endswith("completed at step 75")


def test_logs_of_a_worker_are_what_it_printed(capsys: pytest.CaptureFixture[str]) -> None:
    directory = write_run("run", started(), job=ELASTIC)
    (directory.path / "logs").mkdir()
    (directory.path / "logs" / "worker-0.log").write_text("one\ntwo\n")
    assert main(["jobs", "logs", "run", "--worker=0", "--tail=1"]) == 0
    assert capsys.readouterr().out == "two\n"
    assert main(["jobs", "logs", "run", "--worker=7"]) == 2
    assert "no log of a worker '7' in run. Known: worker-0." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["logs", "run", "--worker=0"], "There are no logs of workers in run"),
        (["logs", "run", "--tail=few"], "Invalid tail 'few'"),
        (["wait", "run", "--timeout=soon"], "Invalid timeout 'soon'"),
        (["list", "--namespace=mine"], "has no cluster. Give --cluster=kubernetes too"),
        (["list", "--cluster=kubernets"], "Invalid cluster 'kubernets'"),
        (["list", "run", "--cluster=kubernetes"], "Give --cluster or directories"),
        (["stop", "run"], "has ended already: completed"),
        (["stop", "run", "--now"], "--now is for jobs on Kubernetes"),
        (["scale", "run", "--num_workers=2"], "has ended (completed)"),
        (["status", "nowhere"], "There is no run 'nowhere'"),
        (["stat", "run"], "Did you mean 'status'"),
    ],
)
def test_what_makes_no_sense_is_refused(
    args: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run("run", started(), ended(160.0))
    assert main(["jobs", *args]) == 2
    assert said in capsys.readouterr().err


def test_the_list_of_commands_has_their_own_words() -> None:
    for name, (_, told) in jobs._lazy.items():
        command = jobs.get_command(click.Context(jobs), name)
        assert command is not None and command.name == name
        assert (command.help or "").splitlines()[0] == told


def test_jobs_alone_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    main(["jobs"])
    shown = "".join(capsys.readouterr())
    assert all(name in shown for name in ("list", "status", "logs", "stop", "scale", "wait"))


# --- stop and wait ---


@pytest.mark.parametrize("where", ["run", "memory://jobs/stopped"])
def test_a_run_that_is_asked_to_stop_hears_it_and_is_waited_for(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elasticdl.artifacts.hold.BEAT_S", 0.01)
    holds, heard = threading.Event(), threading.Event()
    directory = write_run(where, started())

    def run() -> None:
        with running(RunDirectory(where)) as mine:
            holds.set()
            while not mine.is_asked_to_stop():
                heard.wait(0.01)
            mine.events.write_text(lines(started(), ended(160.0, "interrupted")))

    thread = threading.Thread(target=run)
    thread.start()
    holds.wait()
    said: list[str] = []
    found = stop(directory, said.append, wait=lambda _: heard.wait(0.01) and None)
    thread.join()
    assert found is not None and (found.status, found.step) == ("interrupted", 75)
    assert said == [f"Asked {where} (process {os.getpid()} on {platform.node()}) to stop.", WAITING]
    assert not (directory.path / "stop.json").exists()


def test_ctrl_c_after_a_run_was_asked_says_that_it_will_stop() -> None:
    def press(line: str) -> None:
        raise KeyboardInterrupt

    with running(write_run("run", started())) as directory:
        with pytest.raises(Left, match=r"run was asked to stop, and will\."):
            stop(directory, press)
        assert directory.is_asked_to_stop()


def test_ctrl_c_before_a_run_was_asked_says_that_it_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def press(directory: RunDirectory) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("elasticdl.runtime.jobs.stop.account", press)
    with running(write_run("run", started())) as directory:
        assert main(["jobs", "stop", "run"]) == 130
        assert not directory.is_asked_to_stop()
    assert capsys.readouterr().err == "\nrun was not asked to stop: it goes on.\n"


def test_a_run_may_be_asked_without_waiting_for_it() -> None:
    with running(write_run("run", started())) as directory:
        assert main(["jobs", "stop", "run", "--no-wait"]) == 0
        assert directory.is_asked_to_stop()


def test_a_wish_that_was_left_is_none_for_the_next_run() -> None:
    directory = write_run("run", started())
    directory.ask_to_stop()
    with running(directory):
        assert not directory.is_asked_to_stop()


def test_a_run_that_is_stuck_is_named_and_waited_for_on() -> None:
    now, said = [0.0], list[str]()
    hold = running(write_run("run", started()))
    directory = hold.__enter__()

    def wait(_: float) -> None:
        now[0] += 10
        if now[0] == 60:
            hold.__exit__(None, None, None)

    found = stop(directory, said.append, wait=wait, clock=lambda: now[0])
    assert found is not None and found.status == "killed"
    assert f"end process {os.getpid()} on" in said[2]


def test_waiting_ends_with_the_run_or_with_the_time() -> None:
    now = [0.0]
    hold = running(write_run("run", started()))
    directory = hold.__enter__()

    def wait(_: float) -> None:
        now[0] += 1

    assert wait_for(directory, 5.0, wait=wait, clock=lambda: now[0]) is None
    hold.__exit__(None, None, None)
    found = wait_for(directory, 5.0, wait=wait, clock=lambda: now[0])
    assert found is not None and found.status == "killed"


@pytest.mark.parametrize(
    ("status", "code"), [("completed", 0), ("stopped", 0), ("interrupted", 1), ("failed", 1)]
)
def test_the_exit_code_of_waiting_says_how_it_ended(
    status: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run("run", started(), ended(160.0, status))
    assert main(["jobs", "wait", "run"]) == code
    assert capsys.readouterr().out.startswith(f"run: {status}")


def test_waiting_too_long_has_an_exit_code_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    with running(write_run("run", started(), job=TRAIN)):
        assert main(["jobs", "wait", "run", "--timeout=0"]) == 3
    assert "run goes on after 0 s" in capsys.readouterr().err
