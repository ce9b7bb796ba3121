"""The processors of this machine, and which of them each worker has to itself."""

from __future__ import annotations

import os

__all__ = ["Places", "num_cpus", "processors"]


def processors() -> list[int]:
    """The numbers of those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def num_cpus() -> int:
    return len(processors())


class Places:
    """Processors for each worker, where the workers of a job take exactly all there are.

    Members wait for each other in every step. When the system moves them about, two of them meet on one processor for
    a moment and all the others wait. Where there is one for each of them they stay on it; in all other cases the
    system divides better.

    Args:
      cpus: the numbers of the processors; empty for workers that are not on this machine.
      threads: how many a worker computes with.
      workers: how many workers there are to be.
    """

    def __init__(self, cpus: list[int], threads: int, workers: int) -> None:
        divides = hasattr(os, "sched_setaffinity") and threads * workers == len(cpus)
        starts = range(0, len(cpus), threads) if divides else ()
        self._free = [tuple(cpus[start : start + threads]) for start in starts]
        self._taken: dict[int, tuple[int, ...]] = {}

    def take(self, worker: int) -> tuple[int, ...]:
        """The processors of a worker that is started; none when it has to share."""
        if not self._free:
            return ()
        place = self._taken[worker] = self._free.pop(0)
        return place

    def give_back(self, worker: int) -> None:
        """A worker is gone: the next one has its place."""
        place = self._taken.pop(worker, None)
        if place is not None:
            self._free.append(place)
