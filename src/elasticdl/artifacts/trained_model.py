"""The trained model: one directory with all that it takes to use it, on this machine or another.

model/
  trained_model.pb     what it is (message.py); written last
  params.safetensors   its parameters, by name
  model.keras          the model as Keras saves it, where Keras can
  saved_model/         its inference as a graph, for TensorFlow alone
  zoo/                 the files of the model zoo that it needs, with requirements.txt
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from upath import UPath

from elasticdl.artifacts.export import export_saved_model, quiet_saving
from elasticdl.artifacts.message import FORMAT_VERSION, TrainedModel, encode
from elasticdl.artifacts.tensors import checksum, save_tensors
from elasticdl.errors import reason
from elasticdl.storage import new_directory, storage_errors

if TYPE_CHECKING:
    import keras

__all__ = [
    "KERAS",
    "MESSAGE",
    "PARAMETERS",
    "SAVED_MODEL",
    "SAVED_MODELS",
    "ZOO",
    "Trained",
    "save_trained_model",
]

MESSAGE = "trained_model.pb"
PARAMETERS = "params.safetensors"
KERAS = "model.keras"
SAVED_MODEL = "saved_model"
SAVED_MODELS = (SAVED_MODEL, "savedmodel")
"""How the SavedModel's directory may be called: an experiment's export has the second."""
ZOO = "zoo"
MAX_REASON = 170


@dataclass(frozen=True)
class Trained:
    """What there is to write."""

    about: TrainedModel
    """The message, without what is known only when the files are written."""
    model: keras.Model
    """It holds `values`."""
    values: Mapping[str, Any]
    call: Callable[[Any], Any]
    """The inference, of features as the dataset yields them."""
    features: Any
    """The specs of these features."""
    zoo: Mapping[str, bytes] = field(default_factory=dict)
    saved_model: str = SAVED_MODEL
    more: Mapping[str, bytes] = field(default_factory=dict)
    """Other files that belong to it."""


def save_trained_model(where: UPath, trained: Trained) -> list[str]:
    """Write the directory, whole or not at all; returns what a user should know of it."""
    with new_directory(where, last=MESSAGE) as aside, storage_errors(where):
        parameters = {k: v for k, v in trained.values.items() if k.startswith("model/")}
        save_tensors(aside / PARAMETERS, parameters)
        remarks = [*_not_finite(parameters), *_save_keras(trained.model, aside / KERAS)]
        signature, more = export_saved_model(
            aside / trained.saved_model, trained.call, trained.features, trained.model
        )
        zoo = {f"{ZOO}/{name}": content for name, content in trained.zoo.items()}
        for name, content in {**zoo, **trained.more}.items():
            path = aside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        message = dataclasses.replace(
            trained.about,
            format_version=FORMAT_VERSION,
            params_filename=PARAMETERS,
            signature=json.dumps(signature),
            files=_checksums(aside),
        )
        (aside / MESSAGE).write_bytes(encode(message))
    return [*remarks, *more]


def _checksums(directory: Path) -> dict[str, str]:
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): checksum(path) for path in files}


def _not_finite(parameters: Mapping[str, Any]) -> list[str]:
    """Parameters that are NaN though the loss was not: an activation may hide them from it."""
    import numpy as np

    lost = [
        name
        for name, value in parameters.items()
        if np.issubdtype(value.dtype, np.floating) and np.isnan(value).any()
    ]
    if not lost:
        return []
    return [
        f"The trained model is of no use: {', '.join(lost[:3])} holds values that are not numbers. "
        "Look for such values in the data, or lower the learning rate."
    ]


def _save_keras(model: keras.Model, path: Path) -> list[str]:
    """A subclassed model with constructor arguments of its own may not be saveable: not an error."""
    with quiet_saving():
        try:
            model.save(path)
        except (NotImplementedError, TypeError, ValueError) as error:
            path.unlink(missing_ok=True)
            needs = (
                " Its class needs a get_config." if isinstance(error, NotImplementedError) else ""
            )
            return [
                f"Keras cannot save the model as {path.name}: {_short(reason(error))}.{needs} "
                f"Its parameters are in {PARAMETERS}."
            ]
    return []


def _short(text: str) -> str:
    """One line, of whole sentences if one fits: Keras breaks its lines, and adds an example to copy."""
    line = " ".join(text.split())
    if len(line) <= MAX_REASON:
        return line
    if sentences := re.match(rf"(.{{1,{MAX_REASON}}})\.(?= )", line):
        return sentences[1]
    return f"{line[: MAX_REASON + 1].rpartition(' ')[0] or line[:MAX_REASON]} .."
