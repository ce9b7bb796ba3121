"""A config as user code sees it: sections are attributes, `config.model_builder.n_filters`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from elasticdl.errors import UnknownKey, nearest

__all__ = ["ConfigStruct", "Struct"]


class Struct:
    """A section: its keys are attributes, and the sections in it are Structs.

    A mapping with a key that is no text stays a dict: `class_weight: {0: 1.0, 1: 2.5}` is one.

    >>> section = Struct(n_filters=32, optimizer={"name": "adam"})
    >>> section.optimizer.name, "n_filters" in section, section.get("dropout", 0.1)
    ('adam', True, 0.1)
    """

    # Entries are the instance's own attributes, as `vars()` shows them; the name is beside them.
    __slots__ = ("__dict__", "_section_name")

    def __init__(self, /, **entries: Any) -> None:
        object.__setattr__(self, "_section_name", "")
        for key, value in entries.items():
            self.__dict__[key] = _nested(value, key)

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = _nested(value, _joined(_name_of(self), name))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_section_name":
            raise AttributeError(name)  # what copying and pickling ask for
        section = _name_of(self)
        where = f"section {section!r}" if section else "config"
        add = (
            f"Or add {section}.{name} to the config."
            if section
            else "Keys of your own belong into a section, such as model_builder."
        )
        raise UnknownKey(f"The {where} has no key {name!r}. {nearest(name, self)} {add}")

    def __contains__(self, name: object) -> bool:
        return name in self.__dict__

    def __iter__(self) -> Iterator[str]:
        return iter(self.__dict__)

    def __len__(self) -> int:
        return len(self.__dict__)

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Struct) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({shown})"

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a key, or the default where the key is not there."""
        return self.__dict__.get(name, default)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain dicts and lists."""
        return {name: _plain(value) for name, value in self.__dict__.items()}

    def __getstate__(self) -> dict[str, Any]:
        return {"name": _name_of(self), "entries": self.__dict__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        object.__setattr__(self, "_section_name", state["name"])
        self.__dict__.update(state["entries"])


class ConfigStruct(Struct):
    """A whole config: every key that a config may have is there, None where it was not given.

    >>> config = ConfigStruct(epochs=10, model_builder={"n_filters": 32})
    >>> config.seed, config.export.metric, config.model_builder.n_filters, config.augmentor
    (101, 'val_loss', 32, None)
    """

    __slots__ = ()

    def __init__(self, /, **entries: Any) -> None:
        super().__init__(**{**_DEFAULTS, "export": {**_EXPORT}, **entries})


_EXPORT = {"metric": "val_loss", "mode": "min"}
_DEFAULTS: dict[str, Any] = {
    "seed": 101,
    **dict.fromkeys(
        (
            "input_height",
            "input_width",
            "input_channels",
            "src_code_path",
            "data_dir",
            "data_loader_class",
            "model_builder_class",
            "preprocessor_class",
            "augmentor_class",
            "evaluator_class",
            "epochs",
            "batch_size",
            "data_loader",
            "model_builder",
            "preprocessor",
            "augmentor",
            "evaluator",
            "do_train_augmentation",
            "do_validation_augmentation",
            "project_name",
        )
    ),
}


def _nested(value: Any, section: str) -> Any:
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        made = Struct()
        object.__setattr__(made, "_section_name", section)
        for key, inner in value.items():
            made.__dict__[key] = _nested(inner, f"{section}.{key}")
        return made
    if type(value) in (list, tuple):
        return type(value)(_nested(v, f"{section}[{i}]") for i, v in enumerate(value))
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, Struct):
        return Struct.to_dict(value)
    if type(value) in (list, tuple):
        return [_plain(inner) for inner in value]
    return value


def _name_of(struct: Struct) -> str:
    return str(getattr(struct, "_section_name", ""))


def _joined(section: str, name: str) -> str:
    return f"{section}.{name}" if section else name
