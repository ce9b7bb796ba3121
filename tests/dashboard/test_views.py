"""What the views make of events: curves, workers, the ledger, progress, comparisons, words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from run_directories import (
    BEGUN,
    Event,
    append,
    audit,
    ended,
    evaluation,
    formed,
    joined,
    lost,
    started,
    step,
    whole_run,
    write_run,
)

from elasticdl.errors import NotFound
from elasticdl.runtime.dashboard.digest import Digest
from elasticdl.runtime.dashboard.files import entries
from elasticdl.runtime.dashboard.hiding import hide
from elasticdl.runtime.dashboard.views import (
    Run,
    Wanted,
    compare,
    config_rows,
    detail_view,
    events_view,
    goodput,
    ledger,
    log_view,
    open_run,
    run_view,
    series,
    timeline,
)


def digest_of(events: list[Event]) -> Digest:
    digest = Digest()
    for event in events:
        digest.add(event)
    return digest


def curve(digest: Digest, key: str, **wanted: Any) -> list[list[float]]:
    (found,) = [one["points"] for one in series(digest, **wanted) if one["key"] == key]
    return list(found)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return open_run(str(write_run(tmp_path_factory.mktemp("runs") / "run", whole_run())))


# --- curves ---


def test_curves_have_steps_times_and_values() -> None:
    digest = digest_of([started(), step(1, 0.5), step(2, 0.25), evaluation(2, accuracy=0.9)])
    assert curve(digest, "loss") == [[1.0, BEGUN + 1, 0.5], [2.0, BEGUN + 2, 0.25]]
    assert curve(digest, "val_accuracy") == [[2.0, BEGUN + 2, 0.9]]
    kinds = {one["key"]: (one["label"], one["kind"]) for one in series(digest)}
    assert kinds["val_accuracy"] == ("validation accuracy", "metric")
    assert kinds["examples_per_s"][1] == "speed"


def test_down_sampled_curve_keeps_ends_and_spikes() -> None:
    spikes = {33_333: 99.0, 77_777: -99.0}
    digest = digest_of([step(n, spikes.get(n, 1.0)) for n in range(1, 100_001)])
    points = curve(digest, "loss", points=200)
    assert len(points) <= 200
    assert (points[0][0], points[-1][0]) == (1, 100_000)
    assert {n: v for n, _, v in points if v != 1.0} == spikes
    assert [p[0] for p in points] == sorted(p[0] for p in points)


def test_a_part_of_a_curve_is_sampled_for_itself() -> None:
    digest = digest_of([step(n) for n in range(1, 10_001)])
    points = curve(digest, "loss", points=100, start=5000, end=5050)
    assert [point[0] for point in points] == list(range(5000, 5051))


def test_steps_that_were_done_again_are_shown_by_time_only() -> None:
    digest = digest_of(
        [started(), step(1), step(2), step(3), started(step=1), step(2, 9.0), step(4)]
    )
    assert [(p[0], p[2]) for p in curve(digest, "loss")] == [(1, 1.0), (2, 9.0), (4, 0.25)]
    assert len(curve(digest, "loss", x="time")) == 5


def test_loss_that_is_not_a_number_leaves_a_gap() -> None:
    digest = digest_of([step(1, 1.0), {**step(2), "loss": None}, step(3, 3.0)])
    assert [point[0] for point in curve(digest, "loss")] == [1, 3]


# --- workers ---


def test_timeline_tells_who_was_there_and_why_one_went() -> None:
    found = timeline(digest_of(whole_run()), is_live=False)
    first, second = found["workers"]
    assert first["spans"] == [{"from": BEGUN, "to": BEGUN + 21, "end": "ended", "reason": None}]
    assert second["spans"] == [
        {
            "from": BEGUN,
            "to": BEGUN + 10,
            "end": "lost",
            "reason": "its process was killed or crashed",
        }
    ]
    assert [(one["members"], one["stall_s"], one["redone"]) for one in found["groups"]] == [
        (["worker-0", "worker-1"], 0.0, 0),
        (["worker-0"], 2.0, 1),
    ]


def test_worker_of_a_live_run_is_here() -> None:
    (worker,) = timeline(digest_of([joined(0, "worker-0")]), is_live=True)["workers"]
    assert (worker["is_here"], worker["spans"][0]["to"]) == (True, None)
    (worker,) = timeline(digest_of([joined(0, "worker-0")]), is_live=False)["workers"]
    assert (worker["is_here"], worker["spans"][0]["end"]) == (False, "ended")


def test_each_worker_has_its_own_speed() -> None:
    shares = {"worker-0": 30, "worker-1": 10}
    events = [joined(0, "worker-0"), joined(0, "worker-1"), started(), step(2, by_worker=shares)]
    found = timeline(digest_of([*events, step(4, by_worker=shares)]), is_live=True)
    assert {w["name"]: w["examples_per_s"] for w in found["workers"]} == {
        "worker-0": 15.0,
        "worker-1": 5.0,
    }


def test_goodput_counts_stalls_and_not_the_first_group() -> None:
    found = goodput(digest_of(whole_run()))
    assert found is not None
    assert found["total_s"] == 19.0  # from the first group to the last step
    assert (found["stalled_s"], found["redone_steps"]) == (2.0, 1)
    assert found["fraction"] == pytest.approx(1 - 2 / 19, abs=1e-4)
    assert goodput(digest_of([started(), step(1)])) is None


def test_resumed_run_counts_its_own_stalls() -> None:
    resumed = [joined(30, "worker-0"), started(BEGUN + 30, step=20), formed(31, "worker-0")]
    found = goodput(digest_of([*whole_run(), *resumed, step(41)]))
    assert found is not None
    assert (found["fraction"], found["stalled_s"]) == (1.0, 0.0)


# --- the ledger ---


def test_ledger_tells_epochs_and_tasks() -> None:
    tasks = {"todo": 5, "leased": 2, "done": 3, "redone": 1}
    found = ledger(digest_of([started(), audit(5, 0), step(6, tasks=tasks)]))
    assert found["tasks"] == tasks
    assert [(e["epoch"], e["applied_once"], e["finished"]) for e in found["epochs"]] == [
        (0, True, BEGUN + 5),
        (1, None, None),
    ]
    assert ledger(digest_of([started()]))["tasks"] is None


# --- progress ---


def live_view(tmp_path: Path, events: list[Event], job: dict[str, Any] | None = None) -> Any:
    from elasticdl.artifacts.run_directory import RunDirectory

    directory = RunDirectory(tmp_path / "run")
    with directory.held(resume=False, job={"command": "train", **(job or {})}):
        append(tmp_path / "run", *events)
        return run_view(open_run(directory))


def test_progress_of_the_first_epoch_goes_by_records(tmp_path: Path) -> None:
    view = live_view(tmp_path, [started(), step(5)], {"minibatch_size": 64})
    assert (view["total_steps"], view["fraction"], view["eta_s"]) == (20, 0.25, 15.0)


def test_progress_goes_by_the_epochs_that_were_seen(tmp_path: Path) -> None:
    epoch = {"time": BEGUN + 50, "event": "epoch", "epoch": 0, "step": 50, "loss": 1.0}
    view = live_view(tmp_path, [started(), step(50), epoch, step(75)])
    assert (view["total_steps"], view["fraction"], view["eta_s"]) == (100, 0.75, 25.0)


def test_progress_of_workers_shares_the_records_out(tmp_path: Path) -> None:
    events = [started(), formed(1, "worker-0", "worker-1"), step(5)]
    assert live_view(tmp_path, events, {"minibatch_size": 64})["total_steps"] == 10


def test_max_step_is_the_end(tmp_path: Path) -> None:
    assert live_view(tmp_path, [started(), step(5)], {"max_step": 8})["total_steps"] == 8


def test_time_left_of_a_resumed_run_goes_by_its_own_speed(tmp_path: Path) -> None:
    events = [
        started(BEGUN - 9000),
        ended(1, "interrupted"),
        started(BEGUN + 10, step=10),
        step(15),
    ]
    assert live_view(tmp_path, events)["eta_s"] == 5.0  # five steps took five seconds


def test_completed_run_is_done(run: Run) -> None:
    view = run_view(run)
    assert (view["status"], view["fraction"], view["eta_s"]) == ("completed", 1.0, None)
    assert view["duration_s"] == 21.0


def test_best_goes_by_the_metrics_direction(run: Run, tmp_path: Path) -> None:
    assert run_view(run)["best"] == {
        "metric": "val_accuracy",
        "value": 0.8,
        "step": 9,
        "mode": "max",
    }
    by_loss = write_run(tmp_path / "run", whole_run(), {"export_metric": "loss"})
    best = run_view(open_run(str(by_loss)))["best"]
    assert (best["metric"], best["value"], best["mode"]) == ("val_loss", 0.4, "min")


def test_best_is_not_what_a_resumed_run_has_undone(tmp_path: Path) -> None:
    events = [started(), evaluation(5, accuracy=0.5), evaluation(9, accuracy=0.9)]
    again = [started(BEGUN + 10, step=5), evaluation(9, accuracy=0.7), ended(20)]
    view = run_view(open_run(str(write_run(tmp_path / "run", [*events, *again]))))
    assert (view["best"]["value"], view["best"]["step"]) == (0.7, 9)
    assert (view["started"], view["duration_s"]) == (BEGUN, 20.0)


def test_times_that_no_calendar_has_are_not_told(tmp_path: Path) -> None:
    late = [{**event, "time": 1e308} for event in whole_run()]
    run = open_run(str(write_run(tmp_path / "run", late)))
    view, (first, *_) = run_view(run), events_view(run.reading, Wanted())["events"]
    assert [view[key] for key in ("started", "ended", "updated", "duration_s")] == [None] * 4
    assert first["time"] is None
    assert "e+308" not in json.dumps([timeline(run.digest, is_live=False), ledger(run.digest)])


# --- events and logs ---


def texts(run: Run, **wanted: Any) -> list[str]:
    return [one["text"] for one in events_view(run.reading, Wanted(**wanted))["events"]]


def test_events_are_told_in_words(run: Run) -> None:
    told = texts(run)
    assert "worker-1 was lost: its process was killed or crashed" in told
    assert (
        "worker-1 lost: 1 worker goes on at step 12 after 2.00 s, 1 step to be done again" in told
    )
    assert "epoch 1/2  step 5  loss 0.2000  64 examples/s" in told
    assert "worker-0 joined" in told


def test_events_are_chosen_by_level_kind_and_words(run: Run) -> None:
    assert texts(run, level="warning") == [
        "worker-1 was lost: its process was killed or crashed",
        "Warning: Look out.",
    ]
    assert len(texts(run, kind="evaluation")) == 2
    assert texts(run, search="LOOK OUT") == ["Warning: Look out."]
    assert texts(run, search="killed", level="error") == []


def test_bad_end_is_an_error(tmp_path: Path) -> None:
    failed = [started(), ended(1, "failed", error="NonFiniteLoss: it became inf.")]
    run = open_run(str(write_run(tmp_path / "run", failed)))
    assert texts(run, level="error") == ["failed: NonFiniteLoss: it became inf."]


def test_events_are_paged_in_both_directions(run: Run) -> None:
    newest = events_view(run.reading, Wanted(limit=5))["events"]
    assert newest[-1]["event"] == "run_ended"
    earlier = events_view(run.reading, Wanted(limit=5, before=newest[0]["number"]))["events"]
    assert [one["number"] for one in earlier] == [n - 5 for n in (one["number"] for one in newest)]
    later = events_view(run.reading, Wanted(limit=2, after=earlier[0]["number"]))
    assert [one["number"] for one in later["events"]] == [one["number"] for one in earlier[1:3]]
    assert later["total"] == len(whole_run())


def test_log_is_told_from_its_end(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", [started()])
    (directory / "logs").mkdir()
    lines = [f"line {n}" for n in range(1, 1001)]
    (directory / "logs" / "worker-0.log").write_text("\n".join(lines) + "\n\x1b[31mred\x1b[0m\n")
    run = open_run(str(directory))
    found = log_view(run, "worker-0.log", tail=2)
    assert found["lines"] == [
        {"number": 1000, "text": "line 1000"},
        {"number": 1001, "text": "red"},
    ]
    assert found["is_cut"]
    assert [one["number"] for one in log_view(run, "worker-0.log", search="LINE 77")["lines"]] == [
        77,
        *range(770, 780),
    ]
    with pytest.raises(NotFound, match=r"Did you mean 'worker-0\.log'"):
        log_view(run, "worker-1.log")


# --- configurations, comparisons, all of a run ---


def test_configuration_tells_defaults_and_hides_secrets() -> None:
    job = {
        "command": "train",
        "minibatch_size": 7,
        "envs": "TOKEN=abc",
        "training_data": "mysql://me:pass@host/db",
        "model_params": {"units": [1, 2], "api_key": "abc"},
    }
    rows = {row["key"]: (row["value"], row["is_default"]) for row in config_rows(job)}
    assert rows["minibatch_size"] == ("7", False)
    assert rows["num_epochs"] == ("1", True)
    assert rows["model_params.units"] == ("[1, 2]", False)
    assert rows["envs"][0] == rows["model_params.api_key"][0] == "(hidden)"
    assert rows["training_data"][0] == "mysql://(hidden)@host/db"


@pytest.mark.parametrize(
    ("key", "value", "secret"),
    [
        ("data", "redis://:onlypass@h/0", "onlypass"),
        ("data", "https://ghp_abc@github.com/x", "ghp_abc"),
        ("data", "postgres://u:p@ss/word@h/db", "word"),
        ("data", "az://c/x?sv=1&sig=abc%2F", "abc"),
        ("model_params", "units=3; password='hunter2'", "hunter2"),
        ("args", "--token=abcdef --password hunter3", "abcdef"),
        ("args", "--token=abcdef --password hunter3", "hunter3"),
        ("args", ["--password", "hunter3"], "hunter3"),
        ("args", [{"api_key": "hunter4"}], "hunter4"),
        ("args", "Authorization: Bearer hunter5", "hunter5"),
        ("x_access_key", "hunter", "hunter"),
        ("aws_access_key_id", "hunter", "hunter"),
        ("wandb_key", "hunter", "hunter"),
        ("storage_options", {"key": "hunter"}, "hunter"),
        ("auth", ["me", "hunter"], "hunter"),
    ],
)
def test_secrets_are_hidden_in_every_form(key: str, value: Any, secret: str) -> None:
    rows = json.dumps(config_rows({key: value}))
    assert "(hidden)" in rows
    assert secret not in rows


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tokenizer", "bert"),
        ("max_tokens", "7"),
        ("data", "s3://bucket/run@v2"),
        ("author", "me@example.com"),
        ("keys", "a=1; b=2"),
    ],
)
def test_what_is_no_secret_is_shown(key: str, value: str) -> None:
    assert [row["value"] for row in config_rows({key: value})] == [value]


def test_hiding_takes_no_longer_for_hostile_texts() -> None:
    """Each would take minutes if what was looked at were looked at again."""
    for part in ("://", "://a:", "://a@", "a=", "--a ", 'password="', "password=\\", "x://a:@"):
        assert len(hide(part * (1_000_000 // len(part)))) <= 2_000_000


def test_secrets_are_shown_nowhere_else(tmp_path: Path) -> None:
    address = "mysql://root:VALPASS@db/x"
    warning = {"time": BEGUN, "event": "warning", "message": f"No {address}", "password": "VALPASS"}
    other = {"time": BEGUN, "event": "other", "password": "VALPASS"}
    events = [joined(0, "a"), started(), formed(1, "a"), lost(1, "a", address), warning, other]
    asked = {"validation_data": address, "tensorboard_log_dir": "s3://KEY:VALPASS@b/tb"}
    directory = write_run(tmp_path / "run", [*events, ended(2, error=address)], asked)
    told = {"address": "https://mlflow.example.com/x?token=VALPASS", "run_id": "1"}
    (directory / "mlflow.json").write_text(json.dumps(told))
    run = open_run(str(directory))
    detail, found = detail_view(run), events_view(run.reading, Wanted())
    assert "mysql://(hidden)@db/x" in json.dumps(detail["commands"])
    assert "(hidden)@b/tb" in json.dumps(detail["links"])
    assert detail["links"][1]["url"] == "https://mlflow.example.com/x"
    assert "No mysql://(hidden)@db/x" in detail["warning"]
    shown = json.dumps([detail, found, timeline(run.digest, is_live=False), compare([run])])
    assert "VALPASS" not in shown


def test_aliases_of_a_configuration_are_not_written_out(tmp_path: Path) -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    directory = write_run(tmp_path / "run", [started()])
    (directory / "job.json").unlink()
    (directory / "config.yaml").write_text("\n".join([*levels, "num_workers: *a11"]))
    found = detail_view(open_run(str(directory)))
    assert (found["config"], len(found["problems"])) == ([], 1)
    nested: list[Any] = ["x"]
    for _ in range(12):
        nested = [nested] * 10
    assert [row["value"] for row in config_rows({"a": nested})] == ["..."]


def test_job_that_is_nested_without_end_is_not_understood(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", whole_run())
    (directory / "job.json").write_text("[" * 100_000)
    assert detail_view(open_run(str(directory)))["status"] == "completed"


def test_comparison_marks_differences_and_the_best(tmp_path: Path) -> None:
    paths = [
        write_run(
            tmp_path / f"run-{n}",
            [started(), step(1, 1.0 / (n + 1)), evaluation(1, accuracy=0.9 - n / 10), ended(2)],
            {"minibatch_size": 32 * (n + 1), "num_epochs": 2},
        )
        for n in range(3)
    ]
    found = compare([open_run(str(path)) for path in paths])
    rows = {row["key"]: (row["values"], row["differs"]) for row in found["config"]}
    assert rows["minibatch_size"] == (["32", "64", "96"], True)
    assert rows["num_epochs"] == (["2", "2", "2"], False)
    assert found["config"][0]["key"] == "minibatch_size"  # differences first
    best = {row["name"]: row["best"] for row in found["metrics"]}
    assert (best["loss"], best["val_accuracy"], best["duration_s"]) == (2, 0, None)


def test_default_is_told_beside_a_value_that_was_given(tmp_path: Path) -> None:
    one = write_run(tmp_path / "one", whole_run(), {"minibatch_size": 7})
    other = write_run(tmp_path / "other", whole_run())
    rows = {
        row["key"]: row["values"]
        for row in compare([open_run(str(one)), open_run(str(other))])["config"]
    }
    assert rows["minibatch_size"] == ["7", "64"]


def test_detail_tells_artifacts_commands_and_links(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", whole_run(), {"validation_data": "my data"})
    for name in ("model/params.safetensors", "tensorboard/train/events", "checkpoints/step-1/x"):
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(b"")
    head = json.dumps({"model/dense/kernel": {"shape": [4, 3]}, "model/dense/bias": {"shape": [3]}})
    data = len(head).to_bytes(8, "little") + head.encode()
    (directory / "model/params.safetensors").write_bytes(data)
    found = detail_view(open_run(str(directory)))
    assert {one["name"]: one["bytes"] for one in found["artifacts"]}["model/"] == len(data)
    commands = {one["purpose"]: one["command"] for one in found["commands"]}
    assert commands["predict with it"] == (
        f"elasticdl predict --trained_model={directory} --data='my data' --output=predictions.csv"
    )
    assert found["links"][0]["command"] == f"tensorboard --logdir={directory}/tensorboard"
    assert found["model_summary"].splitlines()[1].split() == ["dense", "4x3,", "3", "15"]


def test_sizes_do_not_count_what_is_linked(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", whole_run())
    (directory / "model").mkdir()
    (directory / "model" / "data").write_bytes(b"x" * 100)
    (directory / "model" / "again").symlink_to(directory / "model")
    (directory / "model" / "copy").symlink_to(directory / "model" / "data")
    found = detail_view(open_run(str(directory)))["artifacts"]
    assert {one["name"]: one["bytes"] for one in found}["model/"] == 100


def test_run_that_was_interrupted_tells_how_to_go_on(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "a run", [started(), ended(1, "interrupted")])
    (command, *_) = detail_view(open_run(str(directory)))["commands"]
    assert command["command"] == f"elasticdl train --resume --output='{directory}'"


def test_damaged_files_leave_the_rest_to_be_shown(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", whole_run())
    (directory / "model").mkdir()
    (directory / "model" / "params.safetensors").write_bytes(b"\xff" * 100)
    (directory / "mlflow.json").write_text("[")
    (directory / "job.json").write_text('{"command": ')
    found = detail_view(open_run(str(directory)))
    assert (found["status"], found["model_summary"]) == ("completed", None)
    assert found["problems"] == ["job.json cannot be understood: the configuration is not known."]


def test_lost_worker_shows_in_the_last_change() -> None:
    digest = digest_of([joined(0, "a"), started(), formed(1, "a"), lost(2, "a", "no memory")])
    (worker,) = timeline(digest, is_live=True)["workers"]
    assert (worker["is_here"], worker["spans"][0]["reason"]) == (False, "no memory")


def test_workers_of_a_run_that_was_killed_end_where_it_went_on() -> None:
    first = [joined(0, "worker-0"), started(), formed(1, "worker-0"), step(5)]
    resumed = [joined(30, "worker-1"), started(BEGUN + 31, step=4), formed(32, "worker-1")]
    found = timeline(digest_of([*first, *resumed, step(40)]), is_live=True)["workers"]
    assert [(one["name"], one["is_here"], one["spans"][0]["to"]) for one in found] == [
        ("worker-0", False, BEGUN + 5),
        ("worker-1", True, None),
    ]


def test_search_goes_on_with_new_events(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", [started(), step(1), step(2)])
    run = open_run(str(directory))
    assert texts(run, search="step 2") == ["epoch 1/2  step 2  loss 0.5000  64 examples/s"]
    append(directory, step(20), step(3))
    run.reading.update(entries(run.path, run.root)["events.jsonl"])
    assert [text.split()[3] for text in texts(run, search="step 2")] == ["2", "20"]


def test_search_finds_steps_by_their_words_and_their_fields(tmp_path: Path) -> None:
    events = [started(), step(1), step(2, by_worker={"worker-7": 3}), {**step(3), "loss": None}]
    run = open_run(str(write_run(tmp_path / "run", events)))
    found = {search: len(texts(run, search=search)) for search in ("EXAMPLES/s", "Worker-7", "tep")}
    assert found == {"EXAMPLES/s": 3, "Worker-7": 1, "tep": 3}
    assert (len(texts(run, search="not a number")), len(texts(run, search="lost"))) == (1, 0)


def test_events_of_any_size_are_told_in_few_words(tmp_path: Path) -> None:
    huge = {**step(1), "event": "k" * 10_000, "text": "x" * 1_000_000, "all": list(range(100_000))}
    failed = ended(2, "failed", error="e" * 1_000_000)
    run = open_run(str(write_run(tmp_path / "run", [started(), huge, failed])))
    assert len(json.dumps(events_view(run.reading, Wanted()))) < 20_000
    assert len(json.dumps(run_view(run))) < 10_000


def test_progress_with_fewer_workers_than_before_reaches_the_end_at_the_end(tmp_path: Path) -> None:
    def epoch(n: int, at: int) -> Event:
        return {"time": BEGUN + at, "event": "epoch", "epoch": n, "step": at, "loss": 1.0}

    alone, together = [step(100), epoch(0, 100)], [step(150), epoch(1, 150), step(175)]
    view = live_view(tmp_path, [started(num_epochs=4), *alone, *together])
    assert (view["total_steps"], view["fraction"]) == (250, 0.7)


def test_progress_of_a_run_that_went_back_goes_by_where_it_is(tmp_path: Path) -> None:
    epoch = {"time": BEGUN + 50, "event": "epoch", "epoch": 0, "step": 50, "loss": 1.0}
    events = [started(), step(50), epoch, started(BEGUN + 60, step=30), step(40)]
    assert live_view(tmp_path, events, {"minibatch_size": 16})["total_steps"] == 80
