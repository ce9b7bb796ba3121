"""`elasticdl zoo`: look into a directory of models."""

from __future__ import annotations

from elasticdl.cli.lazy import LazyGroup

__all__ = ["zoo"]

zoo = LazyGroup(
    name="zoo",
    help="Look into a directory of models.",
    lazy={"list": ("elasticdl.cli.zoo_list:list_", "List the models of a zoo.")},
)
