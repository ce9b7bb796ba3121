"""Zoo files imported in a namespace of their own: zoos and installed packages never collide.

Each zoo is a private package in `sys.modules`, served by one finder of ours; `sys.path` is not
touched. Zoo code imports its neighbours as if the zoo's directory were on the path (`import
helper`): the modules get a `__builtins__` whose `__import__` looks in the zoo first, and an `importlib` whose
`import_module` does so too.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import importlib.util
import itertools
import os
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from elasticdl.contract import legacy

__all__ = ["ZooImporter", "is_zoo_module"]

_PREFIX = "_elasticdl_zoo_"
_importers: dict[str, ZooImporter] = {}
_numbers = itertools.count(1)


def is_zoo_module(name: str) -> bool:
    """Whether a dotted name is one of a zoo's own, as modules of zoos are named here."""
    return name.startswith(_PREFIX)


class ZooImporter:
    """One reading of a zoo: each instance imports the files afresh, so no module state leaks."""

    def __init__(self, root: Path) -> None:
        # Not resolved: a debugger's breakpoints carry the path that the user opened.
        self.root = Path(os.path.abspath(root))
        self.package = f"{_PREFIX}{zlib.crc32(str(self.root).encode()):08x}_{next(_numbers)}"
        self.files: list[str] = []
        self._of_old_tensorflow: set[str] = set()
        self.builtins = {**vars(builtins), "__import__": self._import}
        _register(self)

    def load(self, name: str) -> ModuleType:
        """Import `a.b` of the zoo."""
        return importlib.import_module(f"{self.package}.{name}")

    def locate(self, parts: Sequence[str]) -> Path | None:
        """The file or plain directory that Python would take for these parts of a module's name."""
        base = self.root.joinpath(*parts)
        for path in (base / "__init__.py", base.parent / f"{base.name}.py"):
            if path.is_file():
                return path
        return base if base.is_dir() else None

    def find_spec(self, fullname: str) -> ModuleSpec | None:
        path = self.locate(fullname.split(".")[1:])
        if path is None:
            return None
        if path.is_dir():
            spec = ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [str(path)]
            return spec
        places = [str(path.parent)] if path.name == "__init__.py" else None
        loader = _ZooLoader(fullname, str(path), self)
        return importlib.util.spec_from_file_location(
            fullname, path, loader=loader, submodule_search_locations=places
        )

    def note(self, fullname: str, path: str, source: bytes) -> None:
        """A file is about to run: remember it, and whether it was written for an old TensorFlow."""
        relative = Path(path).relative_to(self.root).as_posix()
        if relative not in self.files:
            self.files.append(relative)
        if legacy.mentions_old_optimizer(source):
            self._of_old_tensorflow.add(fullname)

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """What an `import` statement of zoo code calls."""
        importing = str((globals or {}).get("__name__", ""))
        if level == 0 and self._has(name, importing):
            return self._import_own(name, fromlist or ())
        module = builtins.__import__(name, globals, locals, fromlist or (), level)
        if module is importlib:
            return _ZooImportlib(functools.partial(self._import_module, importing))
        if level == 0 and importing in self._of_old_tensorflow:
            return legacy.with_old_optimizers(module)
        return module

    def _import_module(self, importing: str, name: str, package: str | None = None) -> ModuleType:
        """What `importlib.import_module` of zoo code calls."""
        if name.startswith("."):
            name = importlib.util.resolve_name(name, package)
        if self._has(name, importing):
            self._import_own(name, ())
            return sys.modules[f"{self.package}.{name}"]
        module = importlib.import_module(name)
        old = importing in self._of_old_tensorflow
        return legacy.with_old_optimizers(module) if old else module

    def _has(self, name: str, importing: str) -> bool:
        """Whether this name means the zoo's module rather than an installed one."""
        parts = name.split(".")
        path = self.locate(parts[:1])
        if path is None or parts[0] == "elasticdl":
            return False
        if path.is_dir():
            return not self._is_installed(parts[0])
        if importing == f"{self.package}.{parts[0]}":
            # A file `keras.py` that says `import keras` means the installed one.
            in_zoo = len(parts) > 1 and self.locate(parts) is not None
            return in_zoo or not self._is_installed(parts[0])
        return True

    def _is_installed(self, top: str) -> bool:
        try:
            spec = importlib.util.find_spec(top)
        except (ImportError, ValueError):
            return top in sys.modules
        if spec is None:
            return False
        places = [spec.origin] if spec.has_location else list(spec.submodule_search_locations or ())
        # The zoo is often the working directory, which Python has on its path as well.
        return not places or not all(
            Path(os.path.abspath(str(place))).is_relative_to(self.root) for place in places
        )

    def _import_own(self, name: str, fromlist: Sequence[str]) -> ModuleType:
        try:
            if fromlist:
                return builtins.__import__(f"{self.package}.{name}", None, None, fromlist, 0)
            self.load(name)
        except ModuleNotFoundError as error:
            own = f"{self.package}."
            if error.name is None or not error.name.startswith(own):
                raise
            missing = error.name.removeprefix(own)
            raise ModuleNotFoundError(f"No module named {missing!r}", name=missing) from None
        return sys.modules[f"{self.package}.{name.partition('.')[0]}"]


class _ZooImportlib(ModuleType):
    """`importlib` as zoo code sees it: only its `import_module` is another one."""

    def __init__(self, import_module: Callable[..., ModuleType]) -> None:
        super().__init__(importlib.__name__, importlib.__doc__)
        for name in ("__file__", "__path__", "__package__", "__spec__", "__loader__"):
            setattr(self, name, getattr(importlib, name))
        self.import_module = import_module

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib, name)


class _ZooLoader(SourceFileLoader):
    """Python's own loader, with the zoo's builtins and always from the source.

    Python's cache of bytecode goes by whole seconds, so a file edited twice in a second would be
    stale: that happens in notebooks.
    """

    def __init__(self, fullname: str, path: str, zoo: ZooImporter) -> None:
        super().__init__(fullname, path)
        self._zoo = zoo

    def get_code(self, fullname: str) -> CodeType | None:
        source = self.get_data(self.path)
        self._zoo.note(fullname, self.path, source)
        return self.source_to_code(source, self.path)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = self._zoo.builtins
        super().exec_module(module)


class _Finder(MetaPathFinder):
    """Serves the private packages, and no other name."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        importer = _importers.get(fullname.partition(".")[0])
        return importer.find_spec(fullname) if importer and "." in fullname else None


def _register(importer: ZooImporter) -> None:
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    package = ModuleType(importer.package, "A model zoo.")
    package.__path__ = [str(importer.root)]
    package.__spec__ = ModuleSpec(importer.package, None, is_package=True)
    _importers[importer.package] = importer
    sys.modules[importer.package] = package
