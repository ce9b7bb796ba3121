"""What the users of a training pipeline subclass: five components and a config make an experiment.

    from abstractions import DataLoaderBase, ModelBuilderBase, Orchestrator, PreprocessorBase

A thin face of `elasticdl.experiments`. Everything is imported when it is first used: TensorFlow is not
loaded before a model is built.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from abstractions.augmentation import AugmentorBase
    from abstractions.base_class import BaseClass
    from abstractions.data_loading import DataLoaderBase
    from abstractions.evaluation import EvalFunc, EvaluatorBase
    from abstractions.model_building import GenericModelBuilderBase, ModelBuilderBase
    from abstractions.orchestration import Orchestrator
    from abstractions.preprocessing import PreprocessorBase
    from abstractions.training import GenericTrainer, TFKerasTrainer, Trainer

__all__ = [
    "AugmentorBase",
    "BaseClass",
    "DataLoaderBase",
    "EvalFunc",
    "EvaluatorBase",
    "GenericModelBuilderBase",
    "GenericTrainer",
    "ModelBuilderBase",
    "Orchestrator",
    "PreprocessorBase",
    "TFKerasTrainer",
    "Trainer",
]

_HOMES = {
    "AugmentorBase": "augmentation",
    "BaseClass": "base_class",
    "DataLoaderBase": "data_loading",
    "EvalFunc": "evaluation",
    "EvaluatorBase": "evaluation",
    "GenericModelBuilderBase": "model_building",
    "GenericTrainer": "training",
    "ModelBuilderBase": "model_building",
    "Orchestrator": "orchestration",
    "PreprocessorBase": "preprocessing",
    "TFKerasTrainer": "training",
    "Trainer": "training",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'abstractions' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"abstractions.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
