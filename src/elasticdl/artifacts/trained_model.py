"""The trained model: its parameters by name, and the Keras file where the model can be saved as one."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elasticdl.artifacts.run_directory import storage_errors
from elasticdl.errors import CorruptData, NotFound, reason

if TYPE_CHECKING:
    import keras

__all__ = ["find_trained_model", "load_parameters", "save_trained_model"]

PARAMETERS = "params.safetensors"
KERAS = "model.keras"


def save_trained_model(directory: Path, model: keras.Model, values: Mapping[str, Any]) -> list[str]:
    """Write `model/` aside and rename it into place; returns what a user should know of it."""
    from safetensors.numpy import save

    aside = directory.with_name(f".{directory.name}.tmp")
    with storage_errors(directory):
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        try:
            parameters = {k: v for k, v in values.items() if k.startswith("model/")}
            (aside / PARAMETERS).write_bytes(save(parameters))
            remarks = [*_not_finite(parameters), *_save_keras(model, aside / KERAS)]
            for path in aside.iterdir():
                with path.open("rb") as file:
                    os.fsync(file.fileno())
            shutil.rmtree(directory, ignore_errors=True)
            aside.rename(directory)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
    return remarks


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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.save(path)
        except (NotImplementedError, TypeError, ValueError) as error:
            path.unlink(missing_ok=True)
            why = reason(error).splitlines()[0]
            return [
                f"Keras cannot save the model as {path.name}: {why}. Its parameters are in {PARAMETERS}."
            ]
    return []


def find_trained_model(path: Path) -> Path:
    """The `model/` directory, given it, the run directory, or a file inside of it."""
    for candidate in (path / "model", path, path.parent):
        if (candidate / PARAMETERS).exists():
            return candidate
    what = "does not exist" if not path.exists() else f"holds no model/{PARAMETERS}"
    raise NotFound(
        f"There is no trained model in {path}: it {what}. "
        "Give the --output of a training that was completed."
    )


def load_parameters(path: Path) -> dict[str, Any]:
    """The parameters of a trained model, by name."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    file = find_trained_model(path) / PARAMETERS
    try:
        return dict(load_file(file))
    except (SafetensorError, OSError) as error:
        raise CorruptData(f"The trained model {file} cannot be read: {error}.") from error
