"""Trains, ends the training with SIGKILL at random moments, resumes it, and lets it finish at last.

    python kill_and_resume.py SEED KILLS FIRST_COMMAND --then RESUME_COMMAND

The commands end with --output=DIR. TensorFlow is imported once, here; each attempt is a fork of this process,
made before TensorFlow has started anything. Most kills come soon after an attempt has begun to train, every
fourth comes at any time, be it before that. Prints one line of JSON: how many kills there were, and the exit code
of the last attempt.
"""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import keras  # noqa: F401
import tensorflow  # noqa: F401

from elasticdl.cli.main import main


def attempt(arguments: list[str], until: Callable[[float], bool]) -> int | None:
    """The exit code; None when the process was killed. `until` gets the seconds since the start."""
    child = os.fork()
    if child == 0:
        sys.stdout = sys.stderr
        os._exit(main(arguments))
    start = time.monotonic()
    while not until(time.monotonic() - start):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
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


def run() -> None:
    seed, kills = int(sys.argv[1]), int(sys.argv[2])
    between = sys.argv.index("--then")
    first, then = sys.argv[3:between], sys.argv[between + 1 :]
    output = Path(first[-1].removeprefix("--output="))
    draw = random.Random(seed)
    number, code = 0, None
    while code is None:
        until = moment(draw, number, output / "events.jsonl") if number < kills else never
        code = attempt(then if (output / "job.json").exists() else first, until)
        number += code is None
    print(json.dumps({"kills": number, "code": code}))


def never(seconds: float) -> bool:
    return seconds > 120


if __name__ == "__main__":
    run()
