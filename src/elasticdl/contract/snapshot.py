"""The files of a zoo that one model needs: what was imported, and what their source names.

Nothing is run to find them. A trained model carries them, so that it needs the zoo no more.
"""

from __future__ import annotations

import ast
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from elasticdl.contract.distributions import requirements_of
from elasticdl.errors import reason

__all__ = ["MAX_DATA_BYTES", "REQUIREMENTS", "Snapshot", "take_snapshot"]

MAX_DATA_BYTES = 1 << 20
REQUIREMENTS = "requirements.txt"


@dataclass
class Snapshot:
    """Contents by their names relative to the zoo, and what a user should know of them."""

    files: dict[str, bytes] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


def take_snapshot(
    root: Path, imported: Sequence[str], known: Mapping[str, bytes] | None = None
) -> Snapshot:
    """Read the imported files of a zoo and, following their source, all that belongs to them.

    That is: zoo files that they import (inside of functions too), the `__init__.py` files on the
    way, small files that a string in them names, and `requirements.txt`. Never anything hidden, and
    nothing outside of the zoo. Files that are `known` from an earlier snapshot stay as they were.
    """
    taken = Snapshot(dict(known or {}))
    trees: list[ast.Module] = []
    waiting = list(imported)
    while waiting:
        name = waiting.pop()
        # What was imported is part of the zoo, also where a link leads out of it.
        if name in taken.files or not (name in imported or _is_inside(root, name)):
            continue
        try:
            taken.files[name] = content = (root / name).read_bytes()
        except OSError as error:
            taken.remarks.append(f"{name} is not in the trained model: {reason(error)}.")
            continue
        waiting += _packages(root, name)
        if name.endswith(".py") and (tree := _parsed(content)):
            trees.append(tree)
            waiting += [*_imports(root, name, tree), *_data(root, name, tree, taken.remarks)]
    taken.files = {**requirements_of(root, trees), **taken.files}
    taken.files = dict(sorted(taken.files.items()))
    return taken


def _parsed(content: bytes) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python said it when the file was imported
        try:
            return ast.parse(content)
        except (SyntaxError, ValueError):  # a data file that ends in .py
            return None


def _is_inside(root: Path, name: str) -> bool:
    """A visible file below the zoo, also after links are followed."""
    relative = os.path.normpath(name)
    hidden = any(part.startswith(".") for part in Path(relative).parts)
    if hidden or os.path.isabs(relative):
        return False
    path = root / relative
    # Unlike pathlib's, it takes a name that the system refuses for no file.
    return os.path.isfile(path) and path.resolve().is_relative_to(root.resolve())


def _packages(root: Path, name: str) -> list[str]:
    """The `__init__.py` files of the directories above a file."""
    parents = [parent / "__init__.py" for parent in Path(name).parents if parent != Path(".")]
    return [path.as_posix() for path in parents if (root / path).is_file()]


def _imports(root: Path, name: str, tree: ast.Module) -> Iterator[str]:
    """The zoo files that a source file imports anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _modules(root, alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            base = list(Path(name).parts[: -node.level]) if node.level else []
            base += node.module.split(".") if node.module else []
            yield from _modules(root, base)
            for alias in node.names:
                yield from _modules(root, [*base, alias.name])
        elif isinstance(node, ast.Call) and (named := _import_module(node)):
            above = len(named) - len(named.lstrip("."))
            base = list(Path(name).parts[:-above]) if above else []
            yield from _modules(root, [*base, *filter(None, named.split("."))])


def _import_module(call: ast.Call) -> str | None:
    """What a call of `importlib.import_module` names in so many words."""
    function = call.func
    named = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return _path_like(call.args[0]) if named == "import_module" and call.args else None


def _modules(root: Path, parts: list[str]) -> Iterator[str]:
    """The file of `a.b.c`, and of the packages that lead to it."""
    for length in range(1, len(parts) + 1):
        base = Path(*parts[:length])
        for path in (base / "__init__.py", base.with_name(f"{base.name}.py")):
            if (root / path).is_file():
                yield path.as_posix()
                break


def _data(root: Path, name: str, tree: ast.Module, remarks: list[str]) -> Iterator[str]:
    """The small files that a source file names, seen from itself or from the zoo."""
    for text in dict.fromkeys(_strings(tree)):
        for base in (Path(name).parent, Path()):
            found = os.path.normpath(base / text)
            if not _is_inside(root, found):
                continue
            size = (root / found).stat().st_size
            if size <= MAX_DATA_BYTES:
                yield Path(found).as_posix()
            else:
                remarks.append(
                    f"{name} names the file {found}, which is not in the trained model: it has "
                    f"{size / 1e6:.1f} MB, and up to {MAX_DATA_BYTES / 1e6:.1f} MB are taken over."
                )
            break


def _strings(tree: ast.Module) -> Iterator[str]:
    """Strings that could be a path: single ones, and those that are joined to one."""
    for node in ast.walk(tree):
        joined: list[ast.expr] = []
        if isinstance(node, ast.Call):
            joined = node.args  # os.path.join(HERE, "words", "en.txt")
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            joined = _operands(node)  # HERE / "words" / "en.txt"
        texts = [text for part in [node, *joined] if (text := _path_like(part))]
        yield from texts
        if len(texts) > 1:
            yield "/".join(texts)


def _operands(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return [*_operands(node.left), node.right]
    return [node]


def _path_like(node: ast.AST) -> str | None:
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return None
    text = node.value
    return text if 0 < len(text) < 256 and text.isprintable() else None
