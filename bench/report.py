"""How a benchmark says what it measured."""

from __future__ import annotations

import json

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


def finish() -> None:
    print(json.dumps(_ROWS))
