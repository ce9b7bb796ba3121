"""The `requirements.txt` of a snapshot: the zoo's own, or one made of what its files import."""

from __future__ import annotations

import ast
import functools
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import packages_distributions
from pathlib import Path

__all__ = ["requirements_of"]

_FILE = "requirements.txt"
_INCLUDED = re.compile(r"^\s*(?:-r|--requirement|-c|--constraint)[\s=]+(\S+)", re.MULTILINE)
_OURS = "elasticdl"


def requirements_of(root: Path, trees: Iterable[ast.Module]) -> dict[str, bytes]:
    """`requirements.txt` with the files that it includes, by their names in the zoo."""
    if not (root / _FILE).is_file():
        tops = [top for top in _imported(trees) if not _is_own(root, top)]
        names = sorted({d for top in tops for d in _distributions(top)})
        return {_FILE: "".join(f"{name}\n" for name in names).encode()}
    found: dict[str, bytes] = {}
    waiting = [_FILE]
    while waiting:
        name = waiting.pop()
        path = (root / name).resolve()
        if name in found or not path.is_file() or not path.is_relative_to(root.resolve()):
            continue
        found[name] = content = path.read_bytes()
        included = _INCLUDED.findall(content.decode("utf-8", "replace"))
        waiting += [
            os.path.normpath(Path(name).parent / other) for other in included if "://" not in other
        ]
    return found


def _imported(trees: Iterable[ast.Module]) -> set[str]:
    """The first parts of the names of all modules that are imported from elsewhere."""
    tops: set[str] = set()
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                tops.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                tops.add(node.module.partition(".")[0])
    return tops - {_OURS} - set(sys.stdlib_module_names)


def _is_own(root: Path, top: str) -> bool:
    return (root / f"{top}.py").is_file() or (root / top / "__init__.py").is_file()


def _distributions(top: str) -> list[str]:
    """The distribution of a package; none when it shares its name with others (`google`)."""
    found = set(_installed().get(top, ()))
    return list(found) if len(found) == 1 else []


@functools.cache
def _installed() -> Mapping[str, Sequence[str]]:
    return packages_distributions()
