"""The model file: a module with `model` or `custom_model` and the functions beside it."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from elasticdl.contract.first import Columns
from elasticdl.contract.model import Models
from elasticdl.contract.pieces import Pieces
from elasticdl.errors import ContractError, nearest

__all__ = ["functions_beside", "model_of", "part_of", "pieces_of_functions"]

DATASET_NAMES = ("dataset_fn", "feed", "input_fn")
MODEL_NAMES = ("custom_model", "model")


def pieces_of_functions(
    model: Any, module: ModuleType | None, params: Mapping[str, Any], name: str, where: str
) -> Pieces:
    """The parts of a model and the functions of its module; no module for a lone Python object."""
    found = functions_beside(module) if module is not None else _compiled_into(model)
    return Pieces(name=name, where=where, models=Models(where), model=model, params=params, **found)


def model_of(module: ModuleType, where: str) -> tuple[str, Any]:
    """The model of a module that was named without an attribute."""
    for name in MODEL_NAMES:
        if (model := part_of(module, name)) is not None:
            return name, model
    own = [
        (name, value)
        for name, value in vars(module).items()
        if isinstance(value, type)
        and value.__module__ == module.__name__
        and callable(getattr(value, "create_model", None))
    ]
    if len(own) == 1:
        return own[0]
    classes = [n for n, v in vars(module).items() if isinstance(v, type) and not n.startswith("_")]
    raise ContractError(
        f"There is no model: looked for 'custom_model' and 'model' in {where}. Add one, for "
        "example "
        "`def custom_model(): return tf.keras.Sequential([tf.keras.layers.Dense(1)])`, or name a "
        "class of "
        f"the file. {nearest('model', classes) if classes else ''}".rstrip()
    )


def functions_beside(module: ModuleType) -> dict[str, Any]:
    """The parts that a module has under their usual names."""
    return {
        "dataset_fn": next(
            (f for n in DATASET_NAMES if (f := part_of(module, n)) is not None), None
        ),
        "columns": Columns(part_of(module, "feature_columns"), part_of(module, "label_columns")),
        "loss": part_of(module, "loss"),
        "optimizer": part_of(module, "optimizer"),
        "eval_metrics_fn": part_of(module, "eval_metrics_fn"),
        "callbacks": part_of(module, "callbacks"),
        "custom_data_reader": part_of(module, "custom_data_reader"),
        "prediction_outputs_processor": part_of(module, "PredictionOutputsProcessor"),
        "prepare_data": part_of(module, "prepare_data_for_a_single_file"),
    }


def part_of(owner: Any, name: str) -> Any:
    """What a module or class has under a name; `from keras import callbacks` is no part."""
    value = getattr(owner, name, None)
    return None if isinstance(value, ModuleType) else value


def _compiled_into(model: Any) -> dict[str, Any]:
    """What `model.compile` was given, for an instance that was compiled."""
    import keras

    if not isinstance(model, keras.Model) or not model.compiled:
        return {}
    config = model.get_compile_config() or {}
    metrics = keras.saving.deserialize_keras_object(config.get("metrics") or [])
    return {
        "loss": model.loss,
        "optimizer": model.optimizer,
        "eval_metrics_fn": metrics or None,
    }
