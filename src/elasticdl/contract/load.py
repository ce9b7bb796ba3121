"""`load_spec`: whatever a user wrote, in whichever form, as one `Spec`."""

from __future__ import annotations

import dataclasses
import inspect
import os
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from elasticdl.contract.elasticdl_spec import is_spec, pieces_of_spec
from elasticdl.contract.functions import model_of, pieces_of_functions
from elasticdl.contract.keras_class import pieces_of_class
from elasticdl.contract.keras_names import Kind, keras_names
from elasticdl.contract.pieces import OVERRIDES, Pieces, assemble
from elasticdl.contract.requirements import check_requirements
from elasticdl.contract.spec import Spec
from elasticdl.contract.trace import without_machinery
from elasticdl.contract.zoo import Named, Zoo
from elasticdl.errors import (
    ContractError,
    ElasticDLError,
    InvalidValue,
    UnknownName,
    near_match,
    nearest,
)

__all__ = ["load_spec"]

_KERAS_KINDS: Mapping[str, Kind] = {
    "loss": "losses",
    "optimizer": "optimizers",
    "eval_metrics_fn": "metrics",
}


def load_spec(
    model: Any,
    *,
    model_zoo: str | os.PathLike[str] | None = None,
    model_params: Mapping[str, Any] | None = None,
    training: bool = True,
    defaults: Mapping[str, Any] | None = None,
    offers: Mapping[str, Any] | None = None,
    **overrides: Any,
) -> Spec:
    """Turn a user's model into a Spec.

    Args:
      model: a dotted name in the zoo (`mnist.model.custom_model`), or an object: a Keras model, a
        class, a factory function, an ElasticDLSpec, a module.
      model_zoo: the directory of dotted names, or its Git address; the working directory by default.
      model_params: keywords for the factory, class or spec; a learning rate reaches the optimizer.
      training: False where the loss and the optimizer are not needed, and may be missing.
      defaults: by the names of the overrides, what is used where the model brings nothing.
      offers: more keywords, for a model that names them among its parameters.
      overrides: `dataset_fn`, `loss`, `optimizer`, `eval_metrics_fn`, `callbacks`,
        `custom_data_reader`, `prediction_outputs_processor`: None, a dotted name in the zoo, a name
        in the model's file, or an object.

    Raises:
      NotFound, UnknownName: a name that leads nowhere.
      MissingPackage: the zoo's requirements.txt asks for what is not installed.
      ContractError: a part that is missing or of the wrong form.
      InvalidValue: a parameter that the model does not take.

    >>> spec = load_spec("mnist.model.custom_model", model_params={"units": 10})
    """
    for name in overrides:
        if name not in OVERRIDES:
            raise InvalidValue(f"load_spec has no argument {name!r}. {nearest(name, OVERRIDES)}")
    try:
        zoo, params = _LazyZoo(model_zoo), dict(model_params or {})
        return _load(model, zoo, params, overrides, defaults or {}, offers or {}, training)
    except ElasticDLError:
        raise
    except Exception as error:
        # Their file failed: its own lines are what they need to see.
        error.__traceback__ = without_machinery(error.__traceback__)
        raise


class _LazyZoo:
    """The zoo, read when a name is first looked up: Python objects need none."""

    def __init__(self, directory: str | os.PathLike[str] | None) -> None:
        self._directory = directory
        self._zoo: Zoo | None = None

    def find(self, name: str, what: str) -> Named:
        if self._zoo is None:
            zoo = Zoo(self._directory)
            check_requirements(zoo.root)
            self._zoo = zoo
        return self._zoo.find(name, what)

    @property
    def root(self) -> Path | None:
        return self._zoo.root if self._zoo is not None else None

    @property
    def files(self) -> list[str]:
        return self._zoo.files if self._zoo is not None else []


@dataclasses.dataclass(frozen=True)
class _Target:
    """The object to train, and the module whose functions belong to it."""

    value: Any
    name: str
    where: str
    module: ModuleType | None = None


def _load(
    model: Any,
    zoo: _LazyZoo,
    params: dict[str, Any],
    overrides: Mapping[str, Any],
    defaults: Mapping[str, Any],
    offers: Mapping[str, Any],
    training: bool,
) -> Spec:
    target = _target(model, zoo)
    accepted = _accepted(target.value, offers)
    pieces = _pieces(target, accepted | params)
    missing = {part: one for part, one in defaults.items() if getattr(pieces, part) is None}
    pieces = dataclasses.replace(pieces, **missing)
    given = {
        part: _resolve(part, value, target, zoo)
        for part, value in overrides.items()
        if value is not None
    }
    spec = assemble(dataclasses.replace(pieces, **given), zoo.files, training=training)
    return dataclasses.replace(spec, zoo=zoo.root, accepted=frozenset(accepted))


def _accepted(model: Any, offers: Mapping[str, Any]) -> dict[str, Any]:
    if not offers or not callable(model):
        return {}
    return {name: offers[name] for name in inspect.signature(model).parameters if name in offers}


def _target(model: Any, zoo: _LazyZoo) -> _Target:
    if model is None:
        raise ContractError(
            "No model was given. Give a model_def such as mnist.model.custom_model."
        )
    if isinstance(model, str):
        named = zoo.find(model, "model_def")
        if named.attribute is None:
            name, value = model_of(named.module, named.file)
            return _Target(value, name, named.file, named.module)
        return _Target(named.value, named.attribute, named.file, named.module)
    if isinstance(model, ModuleType):
        name, value = model_of(model, f"the module {model.__name__}")
        return _Target(value, name, f"the module {model.__name__}", model)
    name = getattr(model, "__name__", None) or getattr(model, "name", None) or type(model).__name__
    return _Target(model, str(name), f"the given {name}")


def _pieces(target: _Target, params: dict[str, Any]) -> Pieces:
    import keras

    value, module = target.value, target.module
    if isinstance(value, type) and issubclass(value, keras.Model):
        return pieces_of_class(value, module, params, target.name, target.where)
    if is_spec(value):
        return pieces_of_spec(value, params, target.where)
    return pieces_of_functions(value, module, params, target.name, target.where)


def _resolve(part: str, given: Any, target: _Target, zoo: _LazyZoo) -> Any:
    """An override as an object: what a name in the zoo or in the model's file stands for."""
    if not isinstance(given, str):
        return given
    if target.module is not None and hasattr(target.module, given):
        return getattr(target.module, given)
    if "." in given:
        named = zoo.find(given, part)
        if named.attribute is not None:
            return named.value
        if hasattr(named.module, part):
            return getattr(named.module, part)
        raise UnknownName(
            f"The {part} {given!r} is the file {named.file}, which has no {part!r}. Name the "
            f"function: {given}.{part}."
        )
    return _keras_name(part, given, target)


def _keras_name(part: str, name: str, target: _Target) -> Any:
    """A bare name that the model's file does not have: Keras may."""
    import keras

    known: list[str] = []
    if part in _KERAS_KINDS:
        kind = _KERAS_KINDS[part]
        try:
            getattr(keras, kind).get(name)
            return [name] if part == "eval_metrics_fn" else name
        except ValueError:
            known = keras_names(kind)
    what = f"neither in {target.where} nor in Keras" if known else f"not in {target.where}"
    if match := near_match(name, [*known, *_own_names(target.module)]):
        raise UnknownName(f"The {part} {name!r} is {what}. Did you mean {match!r}?")
    raise UnknownName(
        f"The {part} {name!r} is {what}. Give a name in that file, or a dotted name in the zoo "
        f"such as my_file.{part}."
    )


def _own_names(module: ModuleType | None) -> list[str]:
    own = vars(module) if module is not None else {}
    return [n for n, v in own.items() if not n.startswith("_") and not isinstance(v, ModuleType)]
