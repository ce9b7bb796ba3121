"""How a benchmark says what it measured."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence

_ROWS: list[dict] = []


def add(
    name: str,
    ours: float,
    peer: float,
    unit: str,
    goal: float | None = None,
    *,
    more_is_better: bool = True,
) -> None:
    """A row: our figure, the peer's, and the ratio that is wanted; none for what only gives scale."""
    _ROWS.append(
        {
            "name": name,
            "ours": ours,
            "peer": peer,
            "unit": unit,
            "ratio": ours / peer,
            "goal": goal,
            "more_is_better": more_is_better,
        }
    )


def add_turns(
    name: str, ours: Sequence[float], peer: Sequence[float], unit: str, goal: float | None = None
) -> None:
    """A row of what was measured by turns: the ratio is the median of the turns' own; with the least and the most."""
    add(name, statistics.median(ours), statistics.median(peer), unit, goal)
    ratios = sorted(a / b for a, b in zip(ours, peer, strict=True))
    _ROWS[-1] |= {"ratio": statistics.median(ratios), "spread": [ratios[0], ratios[-1]]}


def finish() -> None:
    print(json.dumps(_ROWS))
