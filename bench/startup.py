"""How fast the command line answers, against Python starting and doing nothing."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import report

GOAL_S = 0.3
COMMAND = str(Path(sys.executable).with_name("elasticdl"))


def fastest(command: list[str]) -> float:
    times = []
    for _ in range(10):
        started = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - started)
    return min(times)


def main() -> None:
    nothing = fastest([sys.executable, "-c", "pass"])
    for arguments in (["--help"], ["train", "--help"]):
        seconds = fastest([COMMAND, *arguments])
        report.add(
            f"elasticdl {' '.join(arguments)}: bare Python",
            seconds,
            nothing,
            "s",
            GOAL_S / nothing,
            more_is_better=False,
        )
    report.finish()


if __name__ == "__main__":
    main()
