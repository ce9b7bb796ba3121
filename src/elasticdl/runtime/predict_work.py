"""The work on one lease of a prediction: from the model into the sinks, whoever hands out the leases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from elasticdl.data.ledger import Lease
from elasticdl.engine.predictor import Predictor
from elasticdl.runtime.predict_sinks import Sink

__all__ = ["LeaseWork", "Stopped"]


class Stopped(Exception):
    """Asked to stop in the middle of a lease, whose part is thrown away."""


@dataclass(frozen=True)
class LeaseWork:
    """Predicts leases, in any order.

    Args:
      predictor: the model on its data.
      sinks: who takes the predictions; for the last of them, a lease counts when all of it is there.
    """

    predictor: Predictor
    sinks: Sequence[Sink]

    def run(
        self,
        lease: Lease,
        following: Lease | None = None,
        *,
        on_rows: Callable[[int], None] = lambda rows: None,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> int:
        """Predict a lease, and say how many rows that made.

        It can be done again, here or in another process, and makes the same part.

        Args:
          following: the lease that comes next, to be read ahead.
          on_rows: told of how many rows of the lease are predicted.
          is_stopped: asked between two blocks; then `Stopped` is raised.
        """
        rows = 0
        if is_stopped():
            raise Stopped
        with self.sinks[-1].part(lease.number) as write:
            for block in self.predictor.predict(lease, following):
                for sink in self.sinks[:-1]:
                    with sink.part(lease.number) as hand:
                        hand(block)
                write(block)
                rows += block.num_rows
                on_rows(rows)
                if is_stopped() and rows < lease.num_records:
                    raise Stopped
        return rows
