"""Fitted models that are not Keras': one file of skops, which holds no code, unlike a pickle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from elasticdl.artifacts.experiment_directory import ESTIMATOR
from elasticdl.contract.importer import is_zoo_module
from elasticdl.errors import (
    ContractError,
    CorruptData,
    InvalidValue,
    MissingPackage,
    NotFound,
    reason,
)

__all__ = ["load_estimator", "save_estimator"]

_KNOWN = ("sklearn.", "numpy.", "scipy.", "xgboost.", "lightgbm.", "catboost.", "imblearn.")


def save_estimator(model: Any, directory: Path) -> Path:
    """Write a fitted model into a directory, and see that it can be read back."""
    skops = _skops()
    path = directory / ESTIMATOR
    try:
        skops.dump(model, path)
    except Exception as error:  # of any kind: what is in the model decides
        raise ContractError(
            f"The model that fit returned, {type(model).__name__}, cannot be saved: {reason(error)}. Return "
            "an estimator of scikit-learn or one like it."
        ) from error
    load_estimator(path)
    return path


def load_estimator(path: Path) -> Any:
    """A fitted model of an exported directory, or of its file.

    Types of scikit-learn, its like, and of the experiment's own sources are made; a file that asks for others is
    refused.
    """
    skops = _skops()
    file = path / ESTIMATOR if path.is_dir() else path
    if not file.is_file():
        raise NotFound(f"There is no fitted model {file}. Give runs/RUN_NAME/exported.")
    try:
        asked: list[str] = skops.get_untrusted_types(file=file)
        foreign = [name for name in asked if not _is_known(name)]
        if foreign:
            raise InvalidValue(
                f"{file} asks for {', '.join(foreign)}, which is not known to be safe. Load it with "
                "skops.io.load and name the types that you trust."
            )
        return skops.load(file, trusted=asked)
    except InvalidValue:
        raise
    except Exception as error:  # of any kind: what is in the file decides
        raise CorruptData(f"{file} cannot be loaded: {reason(error)}.") from error


def _is_known(name: str) -> bool:
    """Types of well-known packages, such as the trees of scikit-learn, and those of the experiment's sources."""
    return name.startswith(_KNOWN) or is_zoo_module(name)


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise MissingPackage(
            "Models that are not Keras' need skops. Install it with: pip install 'elasticdl[abstractions]'"
        ) from error
    return skops.io
