"""The five components of an experiment: imported, checked, constructed, and called in their order."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from upath import UPath

from elasticdl.contract.bind import Role, bind
from elasticdl.contract.importer import ZooImporter
from elasticdl.errors import InvalidValue, NotFound
from elasticdl.experiments import chain
from elasticdl.experiments.chain import Data, SourceWrapper
from elasticdl.experiments.classes import check_classes, find_class
from elasticdl.experiments.config import RunConfig
from elasticdl.experiments.eval_functions import check_takes_two, named_functions
from elasticdl.experiments.project import Project
from elasticdl.experiments.struct import ConfigStruct
from elasticdl.experiments.theirs import call, file_of
from elasticdl.storage import is_local, place, storage_errors

__all__ = ["Components", "Data", "load_components"]

_CONFIG = Role.of("config", "cfg", "conf", "configs", "configuration", "run_config")
_NAMES_OF_DATA = ("data_dir", "data_directory", "data_path", "data_root")


@dataclass(frozen=True)
class Components:
    """What the user wrote, ready to be called.

    Attributes:
      config: the run's config, with the data's place in it.
      data_dir: where the data is.
      source: the directory of the user's code.
      files: what was imported of it so far, relative to it.
    """

    data_loader: Any
    augmentor: Any | None
    preprocessor: Any
    model_builder: Any
    evaluator: Any | None
    config: RunConfig
    data_dir: Path | UPath
    source: Path
    files: list[str] = field(default_factory=list)

    @property
    def is_generic(self) -> bool:
        """Whether the model is not Keras': its builder fits it by itself."""
        return _is_generic(type(self.model_builder))

    def training(self, source_wrapper: SourceWrapper | None = None) -> Data:
        """The batches to train on. See `chain.make` for the wrapper."""
        augment = self._augmentation("train", "add_augmentation")
        return self._data("training", augment, source_wrapper)

    def validation(self, source_wrapper: SourceWrapper | None = None) -> Data:
        augment = self._augmentation("validation", "add_validation_augmentation")
        return self._data("validation", augment, source_wrapper)

    def test(self, source_wrapper: SourceWrapper | None = None) -> Data:
        return self._data("test", None, source_wrapper)

    def validation_index(self, num_points: int) -> list[Any] | None:
        """The ids of the validation data points, in their order; None where the loader tells none."""
        return chain.validation_index(self.data_loader, num_points)

    def evaluation_functions(self) -> dict[str, Callable[[Any, Any], Any]] | None:
        """The functions of the evaluator by name; None when there are none."""
        functions = named_functions(self.evaluator) if self.evaluator is not None else None
        for name, function in (functions or {}).items():
            check_takes_two(name, function)
        return functions

    def _augmentation(self, kind: str, method: str) -> Callable[[Any], Any] | None:
        on = getattr(self.config, f"do_{kind}_augmentation")
        return getattr(self.augmentor, method) if on else None

    def _data(
        self, name: str, augment: Callable[[Any], Any] | None, wrapper: SourceWrapper | None
    ) -> Data:
        return chain.make(name, self.data_loader, augment, self.preprocessor, wrapper)


def load_components(
    project: Project, config: RunConfig, data_dir: str | None, *, source: Path | None = None
) -> Components:
    """Import the classes that a config names, check them, and construct them.

    Args:
      project: where the sources are.
      config: the checked config.
      data_dir: the data, here or at an address; the config's own when None.
      source: a copy of the sources, to be taken instead.

    Raises:
      NotFound, UnknownName: the data, a file or a class that is not there.
      ContractError: methods that are missing, of all classes at once.
      Exception: whatever the user's files and constructors raise.
    """
    source = project.source_directory(config) if source is None else source
    where = _data_place(project, config, data_dir)
    importer = ZooImporter(source)
    with _saying_what_is_below(config):
        return _load(project, config, importer, where)


def _load(
    project: Project, config: RunConfig, importer: ZooImporter, where: Path | UPath
) -> Components:
    named = {
        key: getattr(config, key) for key in _wanted(config) if getattr(config, key) is not None
    }
    classes = {key: find_class(importer, key, dotted) for key, dotted in named.items()}
    check_classes(classes, _methods(classes, config))
    config = config.with_data_dir(str(where))
    struct = config.struct
    made = {key: _construct(key, cls, struct, where) for key, cls in classes.items()}
    return Components(
        data_loader=made["data_loader_class"],
        augmentor=made.get("augmentor_class"),
        preprocessor=made["preprocessor_class"],
        model_builder=made["model_builder_class"],
        evaluator=made.get("evaluator_class"),
        config=config,
        data_dir=where,
        source=importer.root,
        files=importer.files,
    )


@contextlib.contextmanager
def _saying_what_is_below(config: RunConfig) -> Iterator[None]:
    """`from src.models import x` means the directory above src_code_path."""
    try:
        yield
    except ModuleNotFoundError as error:
        top = Path(config.src_code_path).name
        if error.name is not None and error.name.partition(".")[0] == top:
            error.add_note(
                f"The sources are imported from inside of src_code_path, {config.src_code_path!r}: leave {top!r}. out, "
                "or set src_code_path to the directory above."
            )
        raise


def _wanted(config: RunConfig) -> list[str]:
    """An augmentor is of use only when an augmentation is switched on."""
    keys = ["data_loader_class", "preprocessor_class", "model_builder_class", "evaluator_class"]
    if config.do_train_augmentation or config.do_validation_augmentation:
        keys.insert(1, "augmentor_class")
    return keys


def _methods(classes: Mapping[str, type], config: RunConfig) -> dict[str, tuple[str, ...]]:
    """The methods that are going to be called of each class."""
    whole = hasattr(classes["preprocessor_class"], "add_preprocess")
    train = ("add_augmentation",) if config.do_train_augmentation else ()
    validation = ("add_validation_augmentation",) if config.do_validation_augmentation else ()
    return {
        "data_loader_class": tuple(f"create_{name}_generator" for name in chain.NAMES),
        "augmentor_class": (*train, *validation),
        "preprocessor_class": () if whole else chain.STEPS,
        "model_builder_class": (
            ("fit",) if _is_generic(classes["model_builder_class"]) else ("get_compiled_model",)
        ),
        "evaluator_class": ("get_eval_funcs",),
    }


def _is_generic(cls: type) -> bool:
    return hasattr(cls, "fit") and not hasattr(cls, "get_compiled_model")


def _construct(key: str, cls: type, config: ConfigStruct, data_dir: Path | UPath) -> Any:
    """Both generations: a data loader takes (config, data_dir), or config with the place in it."""
    by_name = key != "data_loader_class"
    roles = (_CONFIG, Role.of("data_dir", *_NAMES_OF_DATA, by_name=by_name))
    bound = bind(f"The constructor of {cls.__name__} ({file_of(cls)})", cls, roles)
    return call(bound, config=config, data_dir=data_dir)


def _data_place(project: Project, config: RunConfig, given: str | None) -> Path | UPath:
    if not (text := given or config.data_dir):
        raise InvalidValue(
            "No data_dir was given. Give --data_dir, or data_dir in the config, which is seen from the "
            "project's root."
        )
    remote = place(text)
    where: Path | UPath = remote
    if is_local(remote):
        base = Path.cwd() if given else project.root
        where = Path(os.path.abspath(base / str(remote)))
    with storage_errors(str(where), doing="read"):
        exists = where.exists()
    if not exists:
        said = "--data_dir" if given else "data_dir in the config"
        raise NotFound(f"There is no {where}, which was given as {text!r}. Check {said}.")
    return where
