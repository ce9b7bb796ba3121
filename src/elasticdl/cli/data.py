"""`elasticdl data`: make data files for a model, and look into data files."""

from __future__ import annotations

from elasticdl.cli.lazy import LazyGroup

__all__ = ["data"]

data = LazyGroup(
    name="data",
    help="Prepare data files and look into them.",
    lazy={
        "prepare": (
            "elasticdl.cli.data_prepare:prepare",
            "Turn raw files into RecordIO shards with a model's own function.",
        ),
        "inspect": ("elasticdl.cli.data_inspect:inspect", "Show what is in data files."),
    },
)
