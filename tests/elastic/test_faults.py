"""Workers, the leader, the master and all of them are killed for real while they train, and nothing is lost."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import psutil
import pytest
from jobs import ZOO, Job, write_records

import processes
from elasticdl.tracking.events import read_events

pytest.importorskip("ray")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

RECORDS, VALIDATION, MINIBATCH = 2_000, 400, 16
RANGE = 0.2
"""Of the last validation loss around that of a run without faults: 6 % was the most that was seen."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("elastic")
    write_records(root / "train", RECORDS)
    write_records(root / "test", VALIDATION, seed=1)
    return root


def start(output: Path, data: Path, *flags: str, env: dict[str, str] | None = None) -> Job:
    return Job(
        output,
        *common_flags(data),
        f"--minibatch_size={MINIBATCH}",
        "--worker_timeout=3",
        *flags,
        env=env,
    )


def common_flags(data: Path) -> tuple[str, ...]:
    return (
        "--model_def=net.custom_model",
        f"--training_data={data / 'train'}",
        f"--validation_data={data / 'test'}",
        "--seed=5",
    )


def test_training_goes_on_whoever_is_lost(tmp_path: Path, data: Path) -> None:
    flags = ("--num_workers=3", "--num_epochs=500", "--checkpoint_steps=20")
    chance = random.Random()
    with start(tmp_path / "run", data, *flags) as job:
        job.wait_for_workers(3)
        for hurt in (
            one_worker,
            the_leader,
            one_that_hangs,
            the_master,
            one_whose_machine_is_wanted_back,
            all_but_one,
            everybody,
        ):
            job.wait_for_steps(chance.randrange(3, 20))
            hurt(job)
            job.wait_for_steps(5)
            job.wait_for_workers(3)
        lost = [event["reason"] for event in job.events("worker_lost")]
        for number in (4, 2):
            scale(job, number)
        job.wait_for_steps(5)
        job.process.send_signal(signal.SIGINT)
        job.end(130)
    job.check_replicas()
    done = job.check_audits(RECORDS)
    assert len(lost) == 8 and lost.count("it does not answer") == 1
    assert all(event.get("redone", 0) <= 1 for event in job.events("group_formed"))
    (end,) = job.events("run_ended")
    assert end["status"] == "interrupted"
    logs = sorted(path.name for path in (tmp_path / "run" / "logs").iterdir())
    assert {f"worker-{number}.log" for number in range(12)} <= set(logs)
    loss = go_on_with_one_worker(tmp_path / "run", data, end["step"], done + 1)
    undisturbed = loss_of_one_process(tmp_path / "undisturbed", data, done + 1)
    assert loss == pytest.approx(undisturbed, rel=RANGE)


def test_many_steps_in_a_call_are_broken_at_any_of_them(tmp_path: Path) -> None:
    """Python is not there when a worker is lost, and knows afterwards what was done."""
    records = 9_600
    data = write_records(tmp_path / "train", records)
    flags = ("--num_workers=3", "--num_epochs=100000", "--callbacks=digests_of_epochs")
    of_data = ("--model_def=net.custom_model", f"--training_data={data}", "--minibatch_size=16")
    chance = random.Random()
    with Job(tmp_path / "run", *of_data, *flags) as job:
        for kill in range(4):
            job.wait_for_workers(3)
            epochs = len(job.events("epoch_audit"))
            job.wait_until(lambda n=epochs: len(job.events("epoch_audit")) > n, "an epoch")
            time.sleep(chance.random())
            job.kill([list(job.workers)[0 if kill % 2 else chance.randrange(1, 3)]])
            lost = kill + 1
            job.wait_until(lambda n=lost: len(job.events("worker_lost")) == n, "a worker is lost")
        job.wait_for_workers(3)
        job.process.send_signal(signal.SIGINT)
        job.end(130)
    assert job.check_audits(records) > 4
    assert job.check_replicas() > 3, "epochs whose ends several members have seen"
    applied = {step for step, _ in job.digests_by_step}
    assert applied <= {event["step"] for event in job.events("epoch")}, "no step more, none less"
    formed = job.events("group_formed")
    assert all(event["redone"] <= 1 for event in formed)


def test_a_worker_that_takes_all_memory_is_ended_and_called_so(tmp_path: Path, data: Path) -> None:
    memory = psutil.virtual_memory()
    full = (memory.total - memory.available + (3 << 30)) / memory.total
    env = {"RAY_memory_usage_threshold": f"{full:.3f}", "RAY_memory_monitor_refresh_ms": "100"}
    flags = ("--num_workers=2", "--num_epochs=500", "--callbacks=one_eats_memory")
    with start(tmp_path / "run", data, *flags, "--worker_timeout=60", env=env) as job:
        job.wait_until(lambda: job.events("worker_lost"), "a worker is lost")
        assert job.events("worker_lost")[0]["reason"].startswith("out of memory: Ray ended it")
        assert "was lost: out of memory" in job.said


def scale(job: Job, number: int) -> None:
    done = processes.run_python(
        "-m", "elasticdl", "scale", str(job.output), f"--num_workers={number}"
    )
    assert done.returncode == 0, done.stderr
    job.wait_for_workers(number)


def go_on_with_one_worker(output: Path, data: Path, step: int, epochs: int) -> float:
    with start(output, data, "--resume", "--num_workers=1", f"--num_epochs={epochs}") as job:
        job.end()
    assert job.events("run_started")[-1]["step"] == step
    assert job.check_audits(RECORDS) == epochs
    assert job.events("run_ended")[-1]["status"] == "completed"
    *_, evaluation = job.events("evaluation")
    assert evaluation["examples"] == VALIDATION
    return float(evaluation["metrics"]["loss"])


def loss_of_one_process(output: Path, data: Path, epochs: int) -> float:
    """The same training in steps as large as those of three workers, to which nothing happens."""
    done = processes.run_python(
        "-m",
        "elasticdl",
        "train",
        *common_flags(data),
        f"--output={output}",
        f"--model_zoo={ZOO}",
        f"--minibatch_size={3 * MINIBATCH}",
        f"--num_epochs={epochs}",
    )
    assert done.returncode == 0, done.stderr
    *_, evaluation = (
        event for event in read_events(output / "events.jsonl") if event["event"] == "evaluation"
    )
    return float(evaluation["metrics"]["loss"])


def one_worker(job: Job) -> None:
    job.kill([random.choice(list(job.workers)[1:])])


def the_leader(job: Job) -> None:
    job.kill(list(job.workers)[:1])


def one_that_hangs(job: Job) -> None:
    name = list(job.workers)[1]
    process = psutil.Process(job.workers[name])
    process.suspend()
    job.wait_until(lambda: name not in job.workers, "the one that hangs is expelled")
    if process.is_running():
        os.kill(process.pid, signal.SIGCONT)  # it comes back late, and is turned away


def the_master(job: Job) -> None:
    job.master.kill()
    job.wait_until(lambda: job.events("master_restarted"), "the master is back")


def one_whose_machine_is_wanted_back(job: Job) -> None:
    """It leaves by itself, and no step is done again."""
    name = random.choice(list(job.workers))
    job.kill([name], signal.SIGTERM)
    job.wait_until(lambda: job.events("worker_left"), f"{name} leaves")
    (left,) = job.events("worker_left")
    assert left["worker"] == name and "SIGTERM" in left["reason"]
    job.wait_until(lambda: name not in job.events("group_formed")[-1]["members"], "the others")
    assert job.events("group_formed")[-1]["redone"] == 0


def all_but_one(job: Job) -> None:
    job.kill(list(job.workers)[1:])


def everybody(job: Job) -> None:
    """Nobody has the state any more: it is that of the last checkpoint."""
    assert job.check_replicas() > 30
    saved = job.events("checkpoint")[-1]["step"]
    job.kill(list(job.workers))
    job.wait_until(lambda: len(job.events("run_started")) == 2, "a second start")
    assert job.events("run_started")[-1]["step"] >= saved
    job.forget_digests()
