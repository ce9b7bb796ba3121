"""How an epoch is cut into leases, and in which order they are handed out.

The order depends on the shards, the seed and the epoch alone, so that everybody who knows these knows
which records lease number 17 has. Leases are made when they are asked for: an epoch may have millions.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from elasticdl.data.source import Shard

__all__ = ["EpochOrder", "Lease"]


@dataclass(frozen=True)
class Lease:
    """The records [start, end) of a shard, once, in one epoch."""

    epoch: int
    number: int
    """Its place in the epoch's order."""
    shard: str
    start: int
    end: int
    skip: int = 0
    """Minibatches of it that were applied by an earlier holder."""

    @property
    def num_records(self) -> int:
        return self.end - self.start

    def seed(self, seed: int) -> int:
        """The seed of everything random in this lease, whoever runs it."""
        return random.Random(f"{seed}/{self.epoch}/{self.shard}/{self.start}").getrandbits(62)


class EpochOrder:
    """The leases of one epoch by their number. Sequential shards keep their front-to-back order.

    A *piece* is a lease's place in the files' own order: pieces 0, 1, ... are the first shard's.
    """

    def __init__(
        self, shards: Sequence[Shard], records_per_lease: int, epoch: int, seed: int, shuffle: bool
    ) -> None:
        self.key = (epoch, seed, shuffle)
        self._shards = shards
        self._step = records_per_lease
        counts = (-(-shard.num_records // records_per_lease) for shard in shards)
        self._edges = list(accumulate(counts, initial=0))  # each shard's first piece, and the end
        self._pieces: Sequence[int] = range(self._edges[-1])
        if shuffle:
            self._pieces = self._shuffled(random.Random(f"{seed}/{epoch}"))

    def _shuffled(self, chance: random.Random) -> list[int]:
        runs: list[range] = []
        for place, shard in enumerate(self._shards):
            pieces = range(self._edges[place], self._edges[place + 1])
            runs += [pieces] if shard.sequential else [range(i, i + 1) for i in pieces]
        chance.shuffle(runs)
        return [piece for run in runs for piece in run]

    @property
    def epoch(self) -> int:
        return self.key[0]

    def __len__(self) -> int:
        return len(self._pieces)

    def lease(self, number: int, skip: int = 0) -> Lease:
        piece = self._pieces[number]
        place = bisect_right(self._edges, piece) - 1
        shard = self._shards[place]
        start = (piece - self._edges[place]) * self._step
        end = min(start + self._step, shard.num_records)
        return Lease(self.epoch, number, shard.name, start, end, skip)
