"""`RunConfig`: a run's config.yaml, checked whole before anything is loaded, and frozen."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from elasticdl.errors import InvalidValue
from elasticdl.experiments.faults import Give, faults_of
from elasticdl.experiments.overrides import override
from elasticdl.experiments.struct import ConfigStruct
from elasticdl.experiments.yaml_text import dump_yaml, parse_yaml
from elasticdl.storage import storage_errors

if TYPE_CHECKING:
    from upath import UPath

__all__ = ["CLASS_KEYS", "SECTIONS", "ExportConfig", "RunConfig", "json_schema", "load_config"]

CLASS_KEYS = (
    "data_loader_class",
    "augmentor_class",
    "preprocessor_class",
    "model_builder_class",
    "evaluator_class",
)
SECTIONS = ("data_loader", "augmentor", "preprocessor", "model_builder", "evaluator")

_Count = Annotated[int, Field(strict=True, ge=1), Give("a whole number of 1 or more")]
_Size = Annotated[
    Annotated[int, Field(strict=True, ge=1)] | None, Give("a whole number of 1 or more")
]
_Seed = Annotated[
    int, Field(strict=True, ge=0, le=2**32 - 1), Give("a whole number from 0 to 4294967295")
]
_Flag = Annotated[Annotated[bool, Field(strict=True)] | None, Give("true or false")]
_Text = Annotated[str, Field(strict=True, min_length=1), Give("text")]
_CLASS = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$"
_Class = Annotated[str, Field(strict=True, pattern=_CLASS), Give("the file and the class in it")]
_OptionalClass = Annotated[
    Annotated[str, Field(strict=True, pattern=_CLASS)] | None, Give("the file and the class in it")
]
_Section = Annotated[
    dict[Any, Any] | None, Give("a section of indented `key: value` lines, or leave it out")
]


class ExportConfig(BaseModel):
    """Which epoch is exported."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    metric: _Text = Field(
        default="val_loss",
        description="The metric by which the best epoch is chosen, as the training logs it.",
        examples=["val_loss"],
    )
    mode: Annotated[
        Literal["min", "max", "auto"],
        BeforeValidator(lambda mode: mode.lower() if isinstance(mode, str) else mode),
        Give("min, max or auto"),
    ] = Field(
        default="min",
        description="Whether less (min) or more (max) is better; auto goes by the metric's name.",
        examples=["min"],
    )


class RunConfig(BaseModel):
    """One experiment. `load_config` makes it of a file; sections are the user's own."""

    model_config = ConfigDict(frozen=True, extra="forbid", title="ElasticDL experiment")

    project_name: Annotated[
        str, Field(strict=True, pattern=r"^[^/\\]*[^/\\.][^/\\]*$"), Give("text without slashes")
    ] = Field(
        description="The project's name, which is also the name of the MLflow experiment.",
        examples=["mnist"],
    )
    src_code_path: _Text = Field(
        description="The directory of your code, seen from the project's root.", examples=["src"]
    )
    data_loader_class: _Class = Field(
        description="The class that makes the generators of data points, below src_code_path.",
        examples=["dataset.DataLoader"],
    )
    preprocessor_class: _Class = Field(
        description="The class that preprocesses data points and makes batches of them.",
        examples=["preprocessing.Preprocessor"],
    )
    model_builder_class: _Class = Field(
        description="The class that makes the compiled model.", examples=["models.ModelBuilder"]
    )
    augmentor_class: _OptionalClass = Field(
        default=None,
        description="The class that augments data points; needed when an augmentation is on.",
        examples=["augmentation.Augmentor"],
    )
    evaluator_class: _OptionalClass = Field(
        default=None,
        description="The class with the functions that are evaluated for each data point.",
        examples=["evaluation.Evaluator"],
    )
    epochs: _Count = Field(description="Passes over the training data.", examples=[10])
    batch_size: _Count = Field(description="Data points in a batch.", examples=[8])
    seed: _Seed = Field(default=101, description="What all randomness starts from.", examples=[101])
    input_height: _Size = Field(
        default=None, description="Height of the model's input.", examples=[28]
    )
    input_width: _Size = Field(
        default=None, description="Width of the model's input.", examples=[28]
    )
    input_channels: _Size = Field(
        default=None, description="Channels of the model's input.", examples=[3]
    )
    data_dir: Annotated[str | None, Field(strict=True), Give("a path or an address")] = Field(
        default=None,
        description="The data, seen from the project's root, or an address; --data_dir wins over it.",
        examples=["data"],
    )
    do_train_augmentation: _Flag = Field(
        default=None, description="Whether training data is augmented.", examples=[True]
    )
    do_validation_augmentation: _Flag = Field(
        default=None, description="Whether validation data is augmented.", examples=[False]
    )
    checkpoints_to_keep: _Count = Field(
        default=3, description="How many of the last checkpoints are kept.", examples=[3]
    )
    export: Annotated[ExportConfig, Give("a section with metric and mode")] = Field(
        default=ExportConfig(), description="By which metric the epoch to export is chosen."
    )
    data_loader: _Section = Field(default=None, description="Parameters of your data loader.")
    augmentor: _Section = Field(default=None, description="Parameters of your augmentor.")
    preprocessor: _Section = Field(default=None, description="Parameters of your preprocessor.")
    model_builder: _Section = Field(default=None, description="Parameters of your model builder.")
    evaluator: _Section = Field(default=None, description="Parameters of your evaluator.")

    @classmethod
    def parse(cls, given: Any, what: str = "the config") -> RunConfig:
        """Check a mapping. Raises `InvalidValue` with every fault of it, one a line."""
        if not isinstance(given, Mapping):
            raise InvalidValue(_no_mapping(given, what))
        values = {key: _without_slip(key, value) for key, value in given.items()}
        try:
            made: RunConfig | None = cls.model_validate(values)
            errors: Sequence[Any] = ()
        except ValidationError as error:
            made, errors = None, error.errors()
        faults = [*faults_of(errors, cls), *_missing_augmentor(values)]
        if made is None or faults:
            lines = "".join(f"\n  {fault}" for fault in faults)
            count = f"{len(faults)} faults" if len(faults) != 1 else "a fault"
            raise InvalidValue(f"{what} has {count}:{lines}")
        return made

    def with_data_dir(self, data_dir: str) -> RunConfig:
        """The same with the data's place filled in."""
        return self.model_copy(update={"data_dir": data_dir})

    @property
    def struct(self) -> ConfigStruct:
        """What user code gets; a copy of its own each time."""
        return ConfigStruct(**self.model_dump())

    def to_dict(self) -> dict[str, Any]:
        """What was given and the defaults, without the keys that are not set."""
        return {key: value for key, value in self.model_dump().items() if value is not None}

    def to_yaml(self) -> str:
        return dump_yaml(self.to_dict())

    def flat(self) -> dict[str, str]:
        """Dotted keys and their values as text: `model_builder.n_filters` is '512'."""
        return dict(_flat(self.to_dict(), ""))


def load_config(path: UPath, overrides: Sequence[str] = ()) -> RunConfig:
    """Read and check a run's config.

    Args:
      path: the YAML file, anywhere.
      overrides: `model_builder.n_filters=256`, the values in YAML.

    Raises:
      InvalidValue: all faults of it at once.
    """
    given = read_config(path)
    for text in overrides:
        override(given, text, known=tuple(RunConfig.model_fields))
    return RunConfig.parse(given, f"The config {path}" + (" with --set" if overrides else ""))


def read_config(path: UPath) -> dict[str, Any]:
    """The mapping in a YAML file, not yet checked."""
    with storage_errors(path, doing="read"):
        text = path.read_bytes()
    given = parse_yaml(text, f"The config {path}")
    if not isinstance(given, dict):
        raise InvalidValue(_no_mapping(given, f"The config {path}"))
    return given


def json_schema() -> dict[str, Any]:
    """The schema of a config (JSON Schema, draft 2020-12), by which editors complete and check."""
    schema = RunConfig.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _no_mapping(given: Any, what: str) -> str:
    if given is None:
        return f"{what} is empty. Write `key: value` lines, such as epochs: 10; `elasticdl new` writes an example."
    return f"{what} is {_kind(given)}, not a mapping. Write `key: value` lines, such as epochs: 10."


def _kind(given: Any) -> str:
    return "a list" if isinstance(given, list) else f"the single value {given!r}"


def _without_slip(key: Any, value: Any) -> Any:
    """`evaluator_class: 'evaluator_class: evaluation.Evaluator'` was printed once, and copied since."""
    if key in CLASS_KEYS and isinstance(value, str):
        return value.strip().removeprefix(f"{key}:").strip()
    return value


def _missing_augmentor(values: Mapping[Any, Any]) -> Iterator[str]:
    on = [f"do_{kind}_augmentation" for kind in ("train", "validation")]
    on = [key for key in on if values.get(key) is True]
    if on and values.get("augmentor_class") is None:
        yield (
            f"augmentor_class: is missing, and {' and '.join(on)} is true. Name your augmentor, for "
            "example augmentation.Augmentor, or switch augmentation off."
        )


def _flat(value: Any, key: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _flat(inner, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list | dict):
        yield key, json.dumps(value, default=str)
    else:
        yield key, str(value)
