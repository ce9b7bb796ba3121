"""How many processes train an experiment, and where: what `elasticdl run` is told beside the config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from elasticdl.errors import InvalidValue
from elasticdl.job.config import JobConfig

__all__ = ["Workers"]

_ALLREDUCE = "AllreduceStrategy"
_NAMES = (
    "distribution_strategy",
    "num_workers",
    "ray_address",
    "worker_timeout",
    "worker_resource_request",
)


@dataclass(frozen=True)
class Workers:
    """Several processes on Ray, which share each of the experiment's minibatches."""

    options: Mapping[str, Any]
    """Those of a job, by their names there."""

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> Workers | None:
        """What was asked for; None for this process alone.

        Args:
          given: `distribution_strategy`, `num_workers`, `ray_address`, `worker_timeout` and
            `worker_resource_request`, each may be None.

        Raises:
          InvalidValue: one of them is of the wrong form, or they contradict each other.
        """
        job = JobConfig.parse("train", given)
        job.refuse_parameter_servers()
        asks = [name for name in _NAMES[1:3] if given.get(name) is not None]
        strategy = given.get("distribution_strategy")
        if strategy == "Local" and asks and (job.workers != (1, 1) or job.ray_address):
            raise InvalidValue(
                f"Invalid distribution_strategy 'Local' with {' and '.join(asks)}: it means this process alone. "
                f"Give {_ALLREDUCE}, or leave it out."
            )
        if strategy != _ALLREDUCE and job.workers == (1, 1) and job.ray_address is None:
            return None
        options = {name: getattr(job, name) for name in _NAMES}
        return cls({**options, "distribution_strategy": _ALLREDUCE})
