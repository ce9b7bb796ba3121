"""What a SavedModel's graph may not do unless its maker is trusted: run code, touch files, talk to others.

A graph is a program. Most of its operations compute; those named here reach outside. The graph's own saver reads and
writes checkpoints, which is fine as long as nobody else calls it; so do tables that are filled from the model's
assets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

__all__ = ["unsafe_operations"]

_SAVER = re.compile(r"(Save|SaveSlices|SaveV2|Restore|RestoreSlice|RestoreV2|MergeV2Checkpoints)$")
_UNSAFE = re.compile(
    r"""(?:Experimental)?(?:
      (?:Eager)?PyFunc | PyFuncStateless                                        # Python
    | WriteFile | ReadFile | MatchingFiles | FileSystemSetConfiguration         # files
    | GenerateVocabRemapping | LoadAndRemapMatrix | RecordInput | Skipgram | FixedUnigramCandidateSampler
    | DumpTensor | DistributedSave | CalibrationStatisticsSaver | DTensorRestoreV2
    | (?:TextLine|TFRecord|FixedLengthRecord|WholeFile|LMDB)Reader(?:V\d)?
    | (?:TextLine|TFRecord|FixedLengthRecord|CSV|Sql|LMDB|MatchingFiles|Load|Save|Cache)Dataset(?:V\d)?
    | (?:List)?Snapshot(?:Chunks?)?Dataset(?:V\d)? | DatasetToTFRecord
    | CreateSummary(?:File|Db)Writer | DebugIdentity(?:V\d)? | DebugNanCount | DebugNumericSummary(?:V\d)?
    | Rpc(?:Server|Client|Call)\w* | DataServiceDataset(?:V\d)? | RegisterDataset(?:V\d)? | Ifrt\w+  # others
    )$""",
    re.VERBOSE,
)
_TABLE = re.compile(r"InitializeTableFromTextFile(?:V2)?$")
_INIT_OPS = ("saved_model_main_op", "legacy_init_op")


def unsafe_operations(graph: Any) -> list[str]:
    """The names of the operations of a `MetaGraphDef` that reach outside, sorted."""
    main = {node.name: node for node in graph.graph_def.node}
    functions = {f.signature.name: f.node_def for f in graph.graph_def.library.function}
    served = _needed(main, _served(graph))
    entries = _base(graph.saver_def.save_tensor_name), _base(graph.saver_def.restore_op_name)
    savers = {name for name in entries if name in main and name not in served}
    own = _only_called_by(savers, main, functions, set(graph.object_graph_def.concrete_functions))
    found = {node.op for node in main.values() if _UNSAFE.match(node.op) or _prints_to_file(node)}
    found |= {main[name].op for name in served if _SAVER.match(main[name].op)}
    for name, nodes in functions.items():
        found.update(_unsafe_in(nodes, is_saver=name in own))
    return sorted(found)


def _unsafe_in(nodes: Iterable[Any], *, is_saver: bool) -> Iterator[str]:
    constants = {node.name for node in nodes if node.op == "Const"}
    for node in nodes:
        saves = _SAVER.match(node.op) and not is_saver
        if saves or _UNSAFE.match(node.op) or _prints_to_file(node):
            yield node.op
        elif _TABLE.match(node.op) and _base(node.input[1]) in constants:
            yield node.op  # the assets of a model are handed in, a path in the function is another file


def _prints_to_file(node: Any) -> bool:
    return node.op == "PrintV2" and bool(node.attr["output_stream"].s.startswith(b"file:"))


def _served(graph: Any) -> Iterator[str]:
    """What is computed when the model is loaded and called."""
    for signature in graph.signature_def.values():
        yield from (_base(tensor.name) for tensor in signature.outputs.values())
    for name in _INIT_OPS:
        yield from (_base(node) for node in graph.collection_def[name].node_list.value)


def _needed(main: Mapping[str, Any], names: Iterable[str]) -> set[str]:
    """These nodes and those that they take their inputs from."""
    needed: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in main and name not in needed:
            needed.add(name)
            waiting += [_base(one) for one in main[name].input]
    return needed


def _only_called_by(
    savers: set[str], main: Mapping[str, Any], functions: Mapping[str, Any], public: set[str]
) -> set[str]:
    """The functions that nothing but these nodes calls, themselves or through each other.

    Args:
      public: the functions that whoever loads the model calls by name.
    """
    reached = _called([main[name] for name in savers], functions)
    others = [node for name, node in main.items() if name not in savers]
    for name, nodes in functions.items():
        others += nodes if name in public or name not in reached else ()
    return reached - public - _called(others, functions)


def _called(nodes: Iterable[Any], functions: Mapping[str, Any]) -> set[str]:
    called: set[str] = set()
    waiting = list(nodes)
    while waiting:
        for value in waiting.pop().attr.values():
            for name in (value.func.name, *(one.name for one in value.list.func)):
                if name in functions and name not in called:
                    called.add(name)
                    waiting += functions[name]
    return called


def _base(name: str) -> str:
    """The node of a tensor `node:0`, of a function's `node:out:0`, or of a control input `^node`."""
    return name.lstrip("^").partition(":")[0]
