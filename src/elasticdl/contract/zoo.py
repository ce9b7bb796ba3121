"""The names of a zoo: `a.b.fn` is attribute `fn` of `<zoo>/a/b.py`, or an error that helps."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from elasticdl.contract.git_zoo import fetch_zoo
from elasticdl.contract.importer import ZooImporter
from elasticdl.errors import InvalidValue, NotFound, UnknownName, nearest

__all__ = ["Named", "Zoo", "source_files", "top_level_names"]


@dataclass(frozen=True)
class Named:
    """What a dotted name led to: a module, and the object in it unless the name ended there."""

    module: ModuleType
    file: str
    value: Any = None
    attribute: str | None = None


class Zoo:
    """A directory of Python files, here or in a Git repository, read once."""

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        self._importer = ZooImporter(fetch_zoo(directory).directory)
        self.root = self._importer.root

    @property
    def files(self) -> list[str]:
        """The files imported so far, relative to the zoo; grows when code imports later."""
        return self._importer.files

    def find(self, name: str, what: str = "model_def") -> Named:
        """The object or module of a dotted name.

        Raises `NotFound` when no file fits and `UnknownName` when the file has no such attribute.
        """
        parts = self._parts(name, what)
        for length in range(len(parts), 0, -1):
            path = self._importer.locate(parts[:length])
            # A plain directory is no module, and holds an attribute only by way of its files.
            if path is not None and not (path.is_dir() and length != len(parts) - 1):
                return self._inside(path, parts[:length], parts[length:], what)
        raise self._no_such_file(name, parts, what)

    def check(self, name: str, what: str = "model_def") -> None:
        """Refuse a dotted name that no file fits, or whose file has no such name, without running any of it.

        Raises:
          NotFound: no file fits.
          UnknownName: the file defines no such name.
        """
        parts = self._parts(name, what)
        for length in range(len(parts), 0, -1):
            path = self._importer.locate(parts[:length])
            if path is None or (path.is_dir() and length != len(parts) - 1):
                continue
            names = top_level_names(path, imported=True) if path.is_file() else {"*"}
            if length < len(parts) and not {parts[length], "*"} & names:
                raise UnknownName(
                    f"The {what} {name!r}: {self._shown(path)} defines no {parts[length]!r}. "
                    f"{nearest(parts[length], names)}".rstrip()
                )
            return
        raise self._no_such_file(name, parts, what)

    def _parts(self, name: str, what: str) -> list[str]:
        parts = name.split(".")
        if "/" in name or os.sep in name or parts[-1] == "py":
            dotted = name.removesuffix(".py").strip("./").replace(os.sep, ".").replace("/", ".")
            raise InvalidValue(
                f"Invalid {what} {name!r}: give a dotted name below the model zoo, for example "
                f"{dotted!r}."
            )
        if not all(parts):
            raise InvalidValue(
                f"Invalid {what} {name!r}: give a dotted name such as mnist.model.custom_model."
            )
        return parts

    def _inside(self, path: Path, module: list[str], attributes: list[str], what: str) -> Named:
        if attributes and (path.is_dir() or path.name == "__init__.py"):
            found = self._in_directory(path, module, attributes[0], what)
            if found is not None:
                path, module = found, [*module, found.stem]
        loaded = self._importer.load(".".join(module))
        file = self._shown(path)
        value: Any = loaded
        for attribute in attributes:
            if not hasattr(value, attribute):
                raise self._no_such_attribute(what, [*module, *attributes], attribute, value, path)
            value = getattr(value, attribute)
        if not attributes:
            return Named(loaded, file)
        return Named(loaded, file, value, attributes[-1])

    def _in_directory(self, path: Path, module: list[str], name: str, what: str) -> Path | None:
        """The one file of a directory that defines a name: `fintech.Model` over `fintech/*.py`."""
        if path.name == "__init__.py" and name in top_level_names(path, imported=True):
            return None
        directory = path if path.is_dir() else path.parent
        files = [p for p in sorted(directory.glob("*.py")) if p.name != "__init__.py"]
        defining = [p for p in files if name in top_level_names(p)]
        if len(defining) > 1:
            choices = " or ".join(repr(".".join([*module, p.stem, name])) for p in defining)
            raise UnknownName(
                f"The {what} {'.'.join([*module, name])!r} is in several files: give {choices}."
            )
        if not defining and path.is_dir():
            known = {n for p in files for n in top_level_names(p)} | {p.stem for p in files}
            raise UnknownName(
                f"No {name!r} in the directory {self._shown(path)} for {what} "
                f"{'.'.join([*module, name])!r} (looked at {path}). {nearest(name, known)}".rstrip()
            )
        return defining[0] if defining else None

    def _shown(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def _no_such_attribute(
        self, what: str, parts: list[str], attribute: str, owner: Any, path: Path
    ) -> UnknownName:
        own = vars(owner) if hasattr(owner, "__dict__") else {}
        known = [
            n for n, v in own.items() if not n.startswith("_") and not isinstance(v, ModuleType)
        ]
        return UnknownName(
            f"The {what} {'.'.join(parts)!r} names {attribute!r}, which {self._shown(path)} does "
            f"not have (looked at {path}). {nearest(attribute, known)}".rstrip()
        )

    def _no_such_file(self, name: str, parts: list[str], what: str) -> NotFound:
        known = [
            ".".join(p.relative_to(self.root).with_suffix("").parts)
            for p in source_files(self.root)
        ]
        known = [n.removesuffix(".__init__") for n in known]
        module = ".".join(parts[:-1]) or name
        looked = self.root.joinpath(*(parts[:-1] or parts))
        return NotFound(
            f"The {what} {name!r} is not in the model zoo: there is no {looked}.py. "
            f"{nearest(module, known)}".rstrip()
        )


def source_files(root: Path) -> Iterator[Path]:
    """The Python files below a directory, without hidden and cache directories, in order."""
    for directory, subdirectories, files in os.walk(root):
        subdirectories[:] = sorted(
            d for d in subdirectories if not d.startswith((".", "__")) and d != "node_modules"
        )
        for file in sorted(files):
            if file.endswith(".py"):
                yield Path(directory, file)


def top_level_names(path: Path, *, imported: bool = False) -> set[str]:
    """The names that a file defines, or also imports, at its top level; it is not run."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return set()
    names: set[str] = set()
    for node in tree.body:
        names.update(_names_of(node))
        if imported and isinstance(node, ast.Import | ast.ImportFrom):
            names.update(alias.asname or alias.name for alias in node.names)
    return names


def _names_of(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from (n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name))
    elif isinstance(node, ast.If | ast.Try | ast.With):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                yield from _names_of(child)
