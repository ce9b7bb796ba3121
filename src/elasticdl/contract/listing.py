"""The models of a zoo, found by reading the files and running none of them."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from elasticdl.contract.git_zoo import fetch_zoo
from elasticdl.contract.zoo import source_files

__all__ = ["ZooModel", "list_models"]

FUNCTIONS, FIRST, SPEC, KERAS_CLASS, BROKEN = (
    "functions",
    "first contract",
    "ElasticDLSpec",
    "Keras class",
    "syntax error",
)


@dataclass(frozen=True)
class ZooModel:
    """One model of a zoo."""

    name: str
    """What to give to `--model_def`."""
    form: str
    parameters: tuple[tuple[str, str | None], ...]
    """Names and defaults, as written; None for a parameter that must be given."""
    summary: str
    """The first line of its docstring, else of its file's."""
    file: str


def list_models(zoo: str | os.PathLike[str]) -> list[ZooModel]:
    """Every model that a zoo offers, in the order of its files.

    A file that is not valid Python is in the list too, with the form "syntax error".
    """
    root = fetch_zoo(zoo).directory
    return [model for path in source_files(root) for model in _models_of(root, path)]


def _models_of(root: Path, path: Path) -> Iterator[ZooModel]:
    relative = path.relative_to(root)
    parts = relative.with_suffix("").parts
    prefix = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    try:
        tree = ast.parse(path.read_bytes(), filename=str(path))
    except (SyntaxError, ValueError) as error:
        yield ZooModel(prefix, BROKEN, (), str(error), relative.as_posix())
        return
    if not prefix:
        return
    file = _File(tree)
    for node in tree.body:
        if found := file.model(node):
            name, form, arguments = found
            summary = _first_line(node) or _first_line(tree)
            yield ZooModel(f"{prefix}.{name}", form, arguments, summary, relative.as_posix())


Found = tuple[str, str, tuple[tuple[str, str | None], ...]]


class _File:
    """One parsed file."""

    def __init__(self, tree: ast.Module) -> None:
        self._functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
        self._classes = {n.name: n for n in tree.body if isinstance(n, ast.ClassDef)}
        self._assigned = {
            target.id
            for n in tree.body
            if isinstance(n, ast.Assign)
            for target in n.targets
            if isinstance(target, ast.Name)
        }
        self._imported = {
            alias.asname or alias.name
            for n in tree.body
            if isinstance(n, ast.ImportFrom)
            for alias in n.names
        }
        self._form = FIRST if self._is_first() else FUNCTIONS

    def model(self, node: ast.stmt) -> Found | None:
        if isinstance(node, ast.FunctionDef) and node.name in ("custom_model", "model"):
            return node.name, self._form, _parameters(node)
        if isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id in ("custom_model", "model") for t in node.targets
        ):
            return str(ast.unparse(node.targets[0])), self._form, ()
        if isinstance(node, ast.ClassDef):
            return self._class(node)
        return None

    def _class(self, node: ast.ClassDef) -> Found | None:
        bases = set(self._all_bases(node))
        methods = self._methods(node)
        arguments = _parameters(methods["__init__"])[1:] if "__init__" in methods else ()
        if "ElasticDLSpec" in bases and "create_model" in methods:
            kept = tuple(a for a in arguments if a[0] != "context")
            return node.name, SPEC, kept
        beside = {*self._functions, *self._assigned, *self._imported}
        has_loss = "default_loss" in self._members(node) or "loss" in beside
        if bases & {"Model", "Sequential"} and has_loss:
            return node.name, KERAS_CLASS, arguments
        return None

    def _all_bases(self, node: ast.ClassDef) -> Iterator[str]:
        """The last names of a class's bases, through the classes of the same file."""
        for base in node.bases:
            name = ast.unparse(base).rpartition(".")[2]
            yield name
            if (parent := self._classes.get(name)) is not None and parent is not node:
                yield from self._all_bases(parent)

    def _methods(self, node: ast.ClassDef) -> dict[str, ast.FunctionDef]:
        found: dict[str, ast.FunctionDef] = {}
        for name in self._all_bases(node):
            if (parent := self._classes.get(name)) is not None and parent is not node:
                found |= self._methods(parent)
        return found | {n.name: n for n in node.body if isinstance(n, ast.FunctionDef)}

    def _members(self, node: ast.ClassDef) -> set[str]:
        assigned = {
            t.id
            for n in node.body
            if isinstance(n, ast.Assign)
            for t in n.targets
            if isinstance(t, ast.Name)
        }
        return {*self._methods(node), *assigned}

    def _is_first(self) -> bool:
        function = self._functions.get("input_fn")
        newer = {"dataset_fn", "feed"} & set(self._functions)
        return function is not None and len(function.args.args) == 1 and not newer


def _parameters(function: ast.FunctionDef) -> tuple[tuple[str, str | None], ...]:
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    missing: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults))
    defaults = [*missing, *arguments.defaults, *arguments.kw_defaults]
    return tuple(
        (argument.arg, None if default is None else ast.unparse(default))
        for argument, default in zip([*plain, *arguments.kwonlyargs], defaults, strict=True)
    )


def _first_line(node: ast.AST) -> str:
    if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
        return ""
    return (ast.get_docstring(node) or "").partition("\n")[0]
