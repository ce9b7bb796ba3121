"""Trains, ends the training with SIGKILL at random moments, resumes it, and lets it finish at last."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from processes import start_elasticdl


@dataclass(frozen=True)
class Outcome:
    """How often it was killed, the exit code of the last attempt, and all that was said."""

    kills: int
    code: int
    said: str


def kill_and_resume(
    output: Path, first: Sequence[str], then: Sequence[str], *, seed: int, kills: int
) -> Outcome:
    """`elasticdl FIRST`, then `elasticdl THEN` until one ends by itself; so many are killed before.

    Most kills come soon after an attempt has begun to train, every fourth comes at any time, be it before that.
    """
    draw = random.Random(seed)
    log = output.with_suffix(".log")
    number, code = 0, None
    while code is None:
        until = moment(draw, number, output / "events.jsonl") if number < kills else never
        code = attempt(then if (output / "job.json").exists() else first, until, log)
        number += code is None
    return Outcome(number, code, log.read_text())


def attempt(arguments: Sequence[str], until: Callable[[float], bool], log: Path) -> int | None:
    """The exit code; None when the process was killed. `until` gets the seconds since the start."""
    with log.open("a") as said:
        process = start_elasticdl(*arguments, stdout=said, stderr=subprocess.STDOUT)
    start = time.monotonic()
    while not until(time.monotonic() - start):
        if (code := process.poll()) is not None:
            return code
        time.sleep(0.002)
    process.kill()
    process.wait()
    return None


def moment(draw: random.Random, number: int, events: Path) -> Callable[[float], bool]:
    """When to kill this attempt."""
    if number % 4 == 3:
        at = draw.uniform(0, 2)
        return lambda seconds: seconds >= at
    size = events.stat().st_size if events.exists() else 0
    wait, began = draw.uniform(0, 0.3), None

    def is_time(seconds: float) -> bool:
        nonlocal began
        if began is None and events.exists() and events.stat().st_size > size:
            began = seconds
        return began is not None and seconds >= began + wait

    return is_time


def never(seconds: float) -> bool:
    return seconds > 120
