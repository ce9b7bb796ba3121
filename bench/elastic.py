"""Workers that come and go: how long training stands still, how much of it is lost, how it scales.

Our jobs are `elasticdl train` with a Ray of their own. A stall is the longest time around a kill, or around a newcomer,
in which no process took a step, by what the processes themselves wrote down. The peer is Ray Train with the same model,
which starts its whole group anew. Speeds are examples a second between the ends of epochs, in events.jsonl.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import report
from elastic_job import Job, Steps, job, ray_train, write_images

ELASTIC = "--distribution_strategy=AllreduceStrategy"
FOREVER = "--num_epochs=1000"
KILLS = 3
TURNS, EPOCHS_A_TURN = 5, 3
ADD_S = 4.0
SOAK_S, KILL_EVERY_S = 300.0, 20.0


def stalls(root: Path, data: Path) -> None:
    ours = {"one of three workers killed": [], "the leader killed": [], "a newcomer": []}
    flags = (ELASTIC, "--num_workers=3", "--num_epochs=10000")
    with job(root, data, *flags, times=True) as running:
        for kill in range(2 * KILLS):
            running.wait_for_workers(3)
            running.steps.wait(time.time(), 30)
            victim = running.workers()[0 if kill % 2 else 1]
            at = time.time()
            os.kill(victim, signal.SIGKILL)
            running.steps.wait(at + 1, 10)
            what = "the leader killed" if kill % 2 else "one of three workers killed"
            ours[what].append(running.steps.longest_gap(at - 0.5, at + 10))
            joined = running.wait_for_workers(3)
            running.steps.wait(joined + 0.5, 10)
            ours["a newcomer"].append(running.steps.longest_gap(joined - 2, joined + 2))
        redone = max(event.get("redone", 0) for event in running.events("group_formed"))
    peer = ray_train_stalls(root)
    for what, seconds in ours.items():
        middle = statistics.median(seconds)
        report.add(f"stall, {what}: 1 s", middle, 1.0, "s", 1.0, more_is_better=False)
        other = peer["newcomer" if "newcomer" in what else "killed"]
        report.add(f"stall, {what}: Ray Train", middle, other, "s", more_is_better=False)
    report.add("steps redone by a worker per kill", redone, 1, "steps", 1.0, more_is_better=False)


def ray_train_stalls(root: Path) -> dict[str, float]:
    """A kill of one of three workers, and one more worker when a node comes."""
    with ray_train(root) as (process, steps):
        steps.wait(0, 100, patience_s=240)
        at = time.time()
        process.send_signal(signal.SIGUSR1)
        newcomer = wait_for_gap(steps, at, 120)
        steps.wait(time.time(), 60)
        at = time.time()
        os.kill(steps.processes_alive()[0], signal.SIGKILL)
        return {"newcomer": newcomer, "killed": wait_for_gap(steps, at, 240)}


def wait_for_gap(steps: Steps, at: float, patience_s: float) -> float:
    """The group is ended and started anew some time after: wait for steps of processes that were not there."""
    before = set(steps.processes())
    end = time.time() + patience_s
    while set(steps.processes()) <= before and time.time() < end:
        time.sleep(0.5)
    steps.wait(time.time(), 10)
    return steps.longest_gap(at, time.time())


def soak(root: Path, data: Path) -> None:
    """A kill every 20 s: how many steps are taken of those that are without kills, and what the audit says."""
    flags = (ELASTIC, "--num_workers=3", "--num_epochs=100000")
    rates = []
    for kill_every_s, seconds in ((None, SOAK_S / 3), (KILL_EVERY_S, SOAK_S)):
        with job(root, data, *flags, times=True) as running:
            running.wait_for_workers(3)
            running.steps.wait(time.time(), 60)
            began = time.time()
            hurt(running, began + seconds, kill_every_s)
            rates.append(examples_between(running, began, time.time()))
        audits = running.events("epoch_audit")
        assert audits and all(audit["applied_once"] for audit in audits)
    report.add("soak, a kill every 20 s: without kills", rates[1], rates[0], "examples/s", 0.75)


def hurt(running: Job, until: float, every_s: float | None) -> None:
    while time.time() < until:
        time.sleep(min(every_s or 5.0, max(0.0, until - time.time())))
        if every_s and (workers := running.workers()):
            os.kill(random.choice(workers), signal.SIGKILL)


def examples_between(running: Job, began: float, ended: float) -> float:
    """By the epochs whose ends lie there: steps of fewer workers have fewer examples."""
    ends = [e["time"] for e in running.events("epoch_audit") if began <= e["time"] <= ended]
    records = running.events("epoch_audit")[0]["examples"]
    return records * (len(ends) - 1) / (ends[-1] - ends[0])


def by_turns(root: Path, data: Path, *contenders: list[tuple[str, ...]]) -> list[list[float]]:
    """Examples a second of jobs, some of them side by side: a figure for each contender and turn.

    A virtual machine's speed changes from minute to minute, so who is compared has the machine one after the other,
    several times. Every other turn goes backwards: what changes slowly then helps nobody.
    """
    rates: list[list[float]] = [[] for _ in contenders]
    for turn in range(TURNS):
        order = range(len(contenders))
        for number in reversed(order) if turn % 2 else order:
            with contextlib.ExitStack() as stack:
                flags = contenders[number]
                jobs = [stack.enter_context(job(root, data, *each, FOREVER)) for each in flags]
                # The first epoch of a job takes longer than others.
                began = max(ends_of_epochs(one, 0.0, 1)[0]["time"] for one in jobs)
                rates[number].append(sum(epoch_rate(one, began) for one in jobs))
    return rates


def ends_of_epochs(running: Job, after: float, count: int) -> list[dict]:
    """Waits until there are so many since a moment."""
    while True:
        ends = [e for e in running.events("epoch_audit") if e["time"] >= after]
        if len(ends) >= count:
            return ends
        assert running.process.poll() is None, "the job has ended"
        time.sleep(0.2)


def epoch_rate(running: Job, after: float) -> float:
    first, *others = ends_of_epochs(running, after, EPOCHS_A_TURN + 1)
    return sum(e["examples"] for e in others) / (others[-1]["time"] - first["time"])


def additions(processes: int) -> float:
    """How many arrays that fit into no cache some processes add in a second, together."""
    with ProcessPoolExecutor(processes) as pool:
        return sum(pool.map(add, [time.time() + 1.0] * processes)) / ADD_S


def add(begin: float) -> int:
    numbers = np.ones(6_000_000, np.float32)
    time.sleep(max(0.0, begin - time.time()))
    count = 0
    while time.time() < begin + ADD_S:
        numbers += 1.0
        count += 1
    return count


def scaling(root: Path, data: Path) -> None:
    one_thread = (ELASTIC, "--worker_resource_request=cpu=1")
    for size in (64, 128):
        flags = (*one_thread, f"--minibatch_size={size}")
        alone = (*flags, "--num_workers=1")
        apart, one, two = by_turns(
            root, data, [alone, alone], [alone], [(*flags, "--num_workers=2")]
        )
        what = f"two workers of one thread, minibatches of {size}: one of them"
        report.add_turns(what, two, one, "examples/s", 1.7)
        # What the machine has for two: reading goes on beside the one thread, and has a processor of its own with one.
        what = f"two jobs of one worker side by side, minibatches of {size}: one of them"
        report.add_turns(what, apart, one, "examples/s")
    # Memory may be what two lack: other guests of the machine use it, too.
    report.add("two processes that add arrays: one", additions(2), additions(1), "arrays/s")


def overhead(root: Path, data: Path) -> None:
    ray = (ELASTIC, "--minibatch_size=64", "--num_workers=1")
    alone, local = by_turns(root, data, [ray], [("--minibatch_size=64",)])
    report.add_turns("one worker on Ray: Local", alone, local, "examples/s", 0.95)


def main() -> None:
    wanted = sys.argv[1:] or ["scaling", "overhead", "stalls", "soak"]
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        data = write_images(root / "images", 6_144)
        for name in wanted:
            {"scaling": scaling, "overhead": overhead, "stalls": stalls, "soak": soak}[name](
                root, data
            )
    report.finish()


if __name__ == "__main__":
    main()
