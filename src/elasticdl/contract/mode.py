"""The mode that a dataset is made for."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Mode"]


class Mode(StrEnum):
    """Handed to `dataset_fn(dataset, mode)`; equal to its string, so `mode == "training"` works."""

    TRAINING = "training"
    EVALUATION = "evaluation"
    PREDICTION = "prediction"
