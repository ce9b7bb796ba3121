"""The classes that a config names: found in the user's sources, and looked at before they are used."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from elasticdl.contract.importer import ZooImporter
from elasticdl.contract.zoo import source_files
from elasticdl.errors import ContractError, NotFound, UnknownName, near_match, nearest
from elasticdl.experiments.theirs import call, file_of

__all__ = ["check_classes", "find_class"]

_GENERATOR = "(self): ...  # return generator, num_data_points"
_METHODS: Mapping[str, Mapping[str, str]] = {
    "data_loader_class": {
        "create_training_generator": _GENERATOR,
        "create_validation_generator": _GENERATOR,
        "create_test_generator": _GENERATOR,
    },
    "augmentor_class": {
        "add_augmentation": "(self, generator): ...  # return generator",
        "add_validation_augmentation": "(self, generator): ...  # return generator",
    },
    "preprocessor_class": {
        "image_preprocess": "(self, image): ...  # return image",
        "label_preprocess": "(self, label): ...  # return label",
        "add_image_preprocess": "(self, generator): ...  # return generator",
        "add_label_preprocess": "(self, generator): ...  # return generator",
        "batchify": "(self, generator, n_data_points): ...  # return generator, n_iter",
    },
    "model_builder_class": {
        "get_compiled_model": "(self): ...  # return a compiled Keras model",
        "fit": (
            "(self, train_data_gen, n_iter_train, val_data_gen, n_iter_val): ...  "
            "# return a fitted estimator"
        ),
    },
    "evaluator_class": {
        "get_eval_funcs": "(self): ...  # return {'name': function_of_y_true_and_y_pred}"
    },
}


def find_class(importer: ZooImporter, key: str, dotted: str) -> type:
    """The class of a dotted name below the sources, else of an installed package.

    Raises what the user's file raises when it is imported, `NotFound` when there is no such file,
    `UnknownName` when the file has no such class and `ContractError` when it is no class.
    """
    *parts, name = dotted.split(".")
    module = _module(importer, key, dotted, parts)
    value = getattr(module, name, None)
    if value is None:
        raise _no_such_class(module, key, dotted, name)
    if not isinstance(value, type):
        raise ContractError(
            f"The {key} {dotted!r} is no class but {value!r}. {_classes_in(module, name)}"
        )
    return value


def check_classes(found: Mapping[str, type], wanted: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse classes that lack methods, all of them at once.

    Args:
      found: the classes by their keys in the config.
      wanted: the methods that are going to be called of each.
    """
    lines = [
        f"{cls.__name__} ({file_of(cls)}, the {key}) lacks {name}. Write: def {name}{example}"
        for key, cls in found.items()
        for name, example in _lacking(key, cls, wanted[key])
    ]
    if len(lines) == 1:
        raise ContractError(lines[0])
    if lines:
        raise ContractError(f"{len(lines)} methods are missing:\n  " + "\n  ".join(lines))


def _lacking(key: str, cls: type, wanted: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    abstract = sorted(getattr(cls, "__abstractmethods__", ()))
    absent = [name for name in wanted if not callable(getattr(cls, name, None))]
    known = _METHODS[key]
    for name in dict.fromkeys([*absent, *abstract]):
        yield name, known[name] if name in known else f"{inspect.signature(getattr(cls, name))}"


def _module(importer: ZooImporter, key: str, dotted: str, parts: list[str]) -> ModuleType:
    path = importer.locate(parts)
    if path is not None and path.is_file():
        loaded = call(importer.load, ".".join(parts))
        assert isinstance(loaded, ModuleType)
        return loaded
    if (installed := _installed(importer, parts)) is not None:
        return installed
    base = importer.root.joinpath(*parts)
    known = [_dotted(p, importer.root) for p in source_files(importer.root)]
    raise NotFound(
        f"The {key} {dotted!r} does not import: there is no {base}.py and no {base}/__init__.py, and no "
        f"package of that name is installed. {nearest('.'.join(parts), known)}".rstrip()
    )


def _dotted(path: Path, root: Path) -> str:
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def _installed(importer: ZooImporter, parts: list[str]) -> ModuleType | None:
    """A module of an installed package: teams share components that way."""
    name = ".".join(parts)
    try:
        spec = importlib.util.find_spec(parts[0])
    except ValueError:  # a module that was made by hand, such as __main__
        return None
    if spec is None or spec.origin is None:  # a bare directory on Python's path is no package
        return None
    try:
        loaded = call(importlib.import_module, name)
    except ModuleNotFoundError as error:
        if error.name and f"{name}.".startswith(f"{error.name}."):
            return None
        raise
    assert isinstance(loaded, ModuleType)
    return loaded


def _no_such_class(module: ModuleType, key: str, dotted: str, name: str) -> UnknownName:
    return UnknownName(
        f"The {key} {dotted!r} names {name!r}, which {module.__file__} does not have. "
        f"{_classes_in(module, name)}"
    )


def _classes_in(module: ModuleType, name: str) -> str:
    own: list[Any] = [v for v in vars(module).values() if isinstance(v, type)]
    names = [v.__name__ for v in own if v.__module__ == module.__name__]
    match = near_match(name, names)
    advice = f"Did you mean {match!r}? " if match else ""
    return f"{advice}Classes there: {', '.join(names) or 'none'}."
