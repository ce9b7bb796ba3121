"""`make bench`: speed and memory as ratios against a peer, measured in one run.

Each benchmark is a file beside this one, run in a process of its own, that prints JSON: a list of
{"name", "ours", "peer", "unit", "ratio", "goal"}, with "spread" where there were several turns.
Name some to run only those: `python bench/run.py train`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
BENCHMARKS = (
    "train",
    "predict",
    "experiment",
    "sql",
    "sql_parse",
    "checkpoint",
    "read",
    "ledger",
    "elastic_simulation",
    "elastic",
    "dashboard",
    "memory",
    "startup",
)


def run(name: str) -> list[dict]:
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, str(HERE / f"{name}.py")],
        env=environment,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{name} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def judge(row: dict) -> tuple[str, str]:
    """The goal in words, and whether it is met."""
    if row["goal"] is None:
        return "for scale", ""
    if row["more_is_better"]:
        return f"at least {row['goal']:.3g}", "met" if row["ratio"] >= row["goal"] else "MISSED"
    return f"at most {row['goal']:.3g}", "met" if row["ratio"] <= row["goal"] else "MISSED"


def ratio_text(row: dict) -> str:
    if "spread" not in row:
        return f"{row['ratio']:.2f}"
    least, most = row["spread"]
    return f"{row['ratio']:.2f} ({least:.2f} to {most:.2f})"


def show(rows: list[dict]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("benchmark", "ours", "peer", "ratio", "goal", "")
    for row in rows:
        unit = row["unit"]
        table.add_row(
            row["name"],
            f"{row['ours']:,.4g} {unit}",
            f"{row['peer']:,.4g} {unit}",
            ratio_text(row),
            *judge(row),
        )
    Console(width=130).print(table)


def main() -> None:
    rows: list[dict] = []
    for name in sys.argv[1:] or BENCHMARKS:
        print(f"running {name} ...", file=sys.stderr, flush=True)
        rows += run(name)
    show(rows)
    results = HERE / "results.json"
    results.write_text(json.dumps(rows, indent=2) + "\n")
    print(f"written: {results}", file=sys.stderr)


if __name__ == "__main__":
    main()
