"""The end of a prediction, in one process: the output is completed, and told of."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from elasticdl.job.config import JobConfig
from elasticdl.runtime.predict_job import Output
from elasticdl.runtime.result import Result

__all__ = ["Outcome", "finish", "made_result", "next_steps", "tell_left_out"]


@dataclass(frozen=True)
class Outcome:
    """What came of the leases.

    Attributes:
      status: completed, interrupted or preempted.
      total: the records of all leases.
      records: those of leases that are done, now or before.
      num_parts: leases that are done, now or before.
      left_out: records that made no prediction.
    """

    status: str
    total: int
    records: int
    num_parts: int
    left_out: int = 0


def finish(output: Output | None, outcome: Outcome) -> list[str]:
    """Complete the output, by the process that holds it. Gives what the user should be warned of."""
    if output is not None and outcome.status == "completed":
        output.files.complete(outcome.num_parts)
    return [tell_left_out(outcome.total, outcome.left_out)] if outcome.left_out else []


def tell_left_out(total: int, left_out: int) -> str:
    return (
        f"The dataset function did not give one example a record: {total} records made "
        f"{total - left_out} predictions. Let it filter nothing when the mode is prediction."
    )


def made_result(
    config: JobConfig,
    objects: Mapping[str, Any],
    outcome: Outcome,
    *,
    output: Output | None,
    seconds: float,
    predictions: Any = None,
) -> Result:
    """What the caller of a prediction gets."""
    records = outcome.total if outcome.status == "completed" else outcome.records
    return Result(
        command="predict",
        status=outcome.status,
        records=records,
        num_predictions=records - outcome.left_out,
        predictions=predictions,
        output=output.place if output is not None else None,
        seconds=seconds,
        next_steps=next_steps(config, objects, outcome.status),
    )


def next_steps(
    config: JobConfig, objects: Mapping[str, Any], status: str
) -> tuple[tuple[str, str], ...]:
    """What to do with the predictions, or to go on with them."""
    if not config.output:
        return ()
    output = shlex.quote(config.output)
    if status == "completed":
        is_lines = config.output.endswith((".jsonl", ".json")) or config.output_format == "jsonl"
        command = "head" if is_lines else "elasticdl data inspect"
        return (("look at the predictions", f"{command} {output}"),)
    if objects:  # which only Python has
        return (("go on", f"elasticdl.predict(..., output={config.output!r}, resume=True)"),)
    return (("go on", f"elasticdl predict --resume --output={output}"),)
