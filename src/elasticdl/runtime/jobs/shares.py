"""How many workers each group of a Ray cluster may have, when all of them together may have so many. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Group", "shared"]


@dataclass(frozen=True)
class Group:
    """Workers that are alike, and how many of them there may be."""

    name: str
    least: int
    most: int

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> Group:
        """From one of the workerGroupSpecs."""
        least = int(spec.get("minReplicas", spec.get("replicas", 0)))
        return cls(str(spec["groupName"]), least, int(spec.get("maxReplicas", least)))


def shared(workers: tuple[int, int], groups: Sequence[Group]) -> list[Group]:
    """The groups for another number of workers, each with about the share that it has now.

    >>> shared((2, 8), [Group("workers", 2, 3), Group("workers-priority", 0, 1)])
    [Group(name='workers', least=2, most=6), Group(name='workers-priority', least=0, most=2)]
    """
    least, most = workers
    mosts = _parts(most, [group.most for group in groups], [most] * len(groups))
    leasts = _parts(least, [group.least for group in groups], mosts)
    return [
        Group(group.name, low, high) for group, low, high in zip(groups, leasts, mosts, strict=True)
    ]


def _parts(total: int, weights: Sequence[int], limits: Sequence[int]) -> list[int]:
    """Whole numbers that add up to the total, one after the other to who lacks most of its share."""
    parts = [0] * len(weights)
    whole = sum(weights)
    for _ in range(total):
        open_ = [at for at, limit in enumerate(limits) if parts[at] < limit]
        share = {at: total * weights[at] / whole if whole else 1.0 for at in open_}
        parts[max(open_, key=lambda at: (share[at] - parts[at], -at))] += 1
    return parts
