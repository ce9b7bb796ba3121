"""Runs an experiment, ends it with SIGKILL at random moments, and runs it again until it is done."""

from __future__ import annotations

import random
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from processes import start_elasticdl


@dataclass(frozen=True)
class Outcome:
    """How often it was killed, the exit code of the last attempt, and all that was said."""

    kills: int
    code: int
    said: str


def kill_and_go_on(run: Path, *arguments: str, seed: int, kills: int) -> Outcome:
    """`elasticdl ARGUMENTS` until it ends by itself; so often it is killed a while after its first event."""
    draw = random.Random(seed)
    log = run.with_suffix(".log")
    number, code = 0, None
    while code is None:
        wait = draw.uniform(0, 1.2) if number < kills else None
        code = attempt(arguments, run / "events.jsonl", wait, log)
        number += code is None
    return Outcome(number, code, log.read_text())


def attempt(arguments: tuple[str, ...], events: Path, wait: float | None, log: Path) -> int | None:
    """The exit code; None when it was killed, `wait` seconds after it had written an event."""
    size = events.stat().st_size if events.exists() else 0
    with log.open("a") as said:
        process = start_elasticdl(*arguments, stdout=said, stderr=subprocess.STDOUT)
    if wait is None:
        return process.wait()
    began = None
    while (code := process.poll()) is None:
        if began is None and events.exists() and events.stat().st_size > size:
            began = time.monotonic()
        if began is not None and time.monotonic() - began > wait:
            process.kill()
            process.wait()
            return None
        time.sleep(0.002)
    return code
