"""Runs an experiment, ends it with SIGKILL at random moments, and runs it again until it is done.

    python kill_and_go_on.py SEED KILLS RUN_DIRECTORY COMMAND...

TensorFlow is imported once, here; each attempt is a fork of this process, made before TensorFlow has started
anything. An attempt is killed a short while after it has written an event. Prints one line of JSON: how many kills
there were, and the exit code of the last attempt.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import keras  # noqa: F401
import tensorflow  # noqa: F401

from elasticdl.cli.main import main


def attempt(arguments: list[str], events: Path, wait: float | None) -> int | None:
    """The exit code; None when it was killed, `wait` seconds after its first event."""
    size = events.stat().st_size if events.exists() else 0
    child = os.fork()
    if child == 0:
        sys.stdout = sys.stderr
        os._exit(main(arguments))
    began = None
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if began is None and events.exists() and events.stat().st_size > size:
            began = time.monotonic()
        if wait is not None and began is not None and time.monotonic() - began > wait:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        time.sleep(0.002)


def run() -> None:
    seed, kills, directory = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    draw = random.Random(seed)
    number, code = 0, None
    while code is None:
        wait = draw.uniform(0, 1.2) if number < kills else None
        code = attempt(sys.argv[4:], directory / "events.jsonl", wait)
        number += code is None
    print(json.dumps({"kills": number, "code": code}))


if __name__ == "__main__":
    run()
