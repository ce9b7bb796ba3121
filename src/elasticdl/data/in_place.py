"""Maps that run in the thread that asks for their elements.

TensorFlow hands each call of a map's function, and the operations in it, to a pool of threads. Where the function takes
microseconds a record, as parsing does, that costs several times what the function does; and threads that have nothing
to do spin for a while, on processors that the training could use.
"""

from __future__ import annotations

from typing import Any

__all__ = ["run_maps_in_place"]

_CONTROL_FLOW = ("If", "While", "Case", "For", "Switch", "Merge", "Enter", "Exit")
"""What the executor of one thread cannot run: conditions and loops, which TensorFlow takes apart into the last four."""


def run_maps_in_place(graph: Any) -> None:
    """Let the maps of a graph that is being built, other than those that ask for parallel calls, do without a pool."""
    from tensorflow.core.framework import attr_value_pb2

    maps = [op for op in graph.get_operations() if op.type == "MapDataset"]
    functions = {f.signature.name: f for f in graph.as_graph_def().library.function} if maps else {}
    for op in maps:
        if not _branches(op.get_attr("f").name, functions, set()):
            op._set_attr("use_inter_op_parallelism", attr_value_pb2.AttrValue(b=False))


def _branches(name: str, functions: dict[str, Any], seen: set[str]) -> bool:
    """Whether a function, or one that it calls, has a condition or a loop."""
    if name in seen:
        return False
    seen.add(name)
    if name not in functions:  # nobody knows
        return True
    return any(
        node.op.removeprefix("Stateless").removeprefix("Ref") in _CONTROL_FLOW
        or any(_branches(called, functions, seen) for called in _called(node))
        for node in functions[name].node_def
    )


def _called(node: Any) -> list[str]:
    attributes = node.attr.values()
    return [f.name for a in attributes for f in (a.func, *a.list.func) if f.name]
