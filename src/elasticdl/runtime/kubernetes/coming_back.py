"""What whoever leaves a job is told: that it goes on, and how to come back to it."""

from __future__ import annotations

import shlex
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from elasticdl.errors import Stopped

if TYPE_CHECKING:
    from elasticdl.runtime.kubernetes.client import Cluster

__all__ = ["Detached", "detached", "goes_on", "heard_sigterm"]


class Detached(Stopped):
    """Ctrl-C or SIGTERM while a job was submitted or followed: it goes on."""

    is_failure = False


def goes_on(cluster: Cluster, name: str) -> str:
    """Lines, each with a command at its end."""
    where = f"{name} --cluster={shlex.quote(cluster.flag)} --namespace={cluster.namespace}"
    return (
        f"The job {name!r} goes on.\n"
        f"Come back with: elasticdl jobs logs -f {where}\n"
        f"Stop it with: elasticdl jobs stop {where}"
    )


def detached(message: str, by: KeyboardInterrupt) -> Detached:
    """The error for an interrupt: SIGTERM has another exit code."""
    return Detached(message, "preempted" if by.args == (signal.SIGTERM,) else "interrupted")


@contextmanager
def heard_sigterm() -> Iterator[None]:
    """SIGTERM interrupts as Ctrl-C does, where it would end the process without a word."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _interrupt(number: int, _: object) -> NoReturn:
    raise KeyboardInterrupt(signal.SIGTERM)
