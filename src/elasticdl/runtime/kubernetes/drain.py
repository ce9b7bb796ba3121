"""Before a pod ends: its worker leaves the group between two steps, and nothing of its work is lost.

Kubernetes runs this before it stops a pod (`preStop`), with the seconds that it may take. Ray is told first, so that
the worker's successor is not started in the very same pod.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

__all__ = ["close_node", "drain", "main", "workers"]

TITLE = b"ray::Worker"
"""What Ray calls the processes of our actor."""
LOOK_S = 0.2
CLOSE_S = 10.0
"""How long Ray may take to hear of it: the worker can leave without that."""


def workers(proc: Path = Path("/proc")) -> list[int]:
    """The worker processes that are here."""
    found = []
    for entry in proc.iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if (entry / "cmdline").read_bytes().startswith(TITLE):
                found.append(int(entry.name))
    return found


def close_node(within_s: float, *more: str) -> bool:
    """Let Ray start nothing more here; returns whether it heard. `more`: flags of `ray drain-node`."""
    command = [
        *(sys.executable, "-m", "ray.scripts.scripts", "drain-node"),
        "--reason=DRAIN_NODE_REASON_PREEMPTION",
        "--reason-message=the pod is being stopped",
        f"--deadline-remaining-seconds={math.ceil(within_s)}",
        *more,
    ]
    try:
        done = subprocess.run(command, timeout=min(CLOSE_S, within_s), capture_output=True)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def drain(pids: list[int], within_s: float) -> list[int]:
    """Ask them to leave, and wait; returns who is still there."""
    left = []
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
            left.append(pid)
    until = time.monotonic() + within_s
    while left and time.monotonic() < until:
        time.sleep(LOOK_S)
        there = set(workers())
        left = [pid for pid in left if pid in there]
    return left


def main(argv: list[str]) -> int:
    until = time.monotonic() + float(argv[0])
    close_node(float(argv[0]))
    left = drain(workers(), until - time.monotonic())
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
