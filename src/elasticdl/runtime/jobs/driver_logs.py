"""What the driver of a job on Kubernetes prints, shown and followed."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import count

from elasticdl.errors import RunError
from elasticdl.runtime.jobs.jobs import Say
from elasticdl.runtime.kubernetes.client import Cluster
from elasticdl.runtime.kubernetes.follow import Detached, follow
from elasticdl.runtime.kubernetes.refusals import Refused, Unreachable

__all__ = ["follow_driver", "show_driver"]

PREEMPTED = 143
"""The exit code of what SIGTERM ended."""


def show_driver(cluster: Cluster, job: str, show: Say, tail: int | None) -> None:
    """The lines so far, or the last of them."""
    for line in _last(cluster.logs(job), tail):
        show(line)


def follow_driver(
    cluster: Cluster, job: str, say: Say, show: Say, tail: int | None, *, poll_s: float
) -> None:
    """The lines until the job ends. Its states and the way to its dashboard are said.

    Raises:
      KeyboardInterrupt: Ctrl-C or SIGTERM; the job goes on.
    """
    before = [] if tail is None else _so_far(cluster, job)
    for line in _last(before, tail):
        show(line)
    lines = count()

    def show_new(line: str) -> None:
        if next(lines) >= len(before):
            show(line)

    try:
        follow(cluster, job, say, show=show_new, poll_s=poll_s)
    except Detached as left:
        raise KeyboardInterrupt(*_signals(left)) from None
    if next(lines) == 0:  # it had ended before it could be followed
        for line in _so_far(cluster, job)[len(before) :]:
            show(line)


def _signals(left: Detached) -> tuple[signal.Signals, ...]:
    """As `main` tells SIGTERM from Ctrl-C."""
    return (signal.SIGTERM,) if left.exit_code == PREEMPTED else ()


def _so_far(cluster: Cluster, job: str) -> Sequence[str]:
    try:
        return list(cluster.logs(job))
    except (Refused, Unreachable):
        raise
    except RunError:
        return []  # it does not run yet


def _last(lines: Iterable[str], tail: int | None) -> Iterable[str]:
    return lines if tail is None else deque(lines, maxlen=tail)
