"""Which data points are the worst: the order in which somebody looks for what went wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from elasticdl.reports.table import PointTable

__all__ = ["Direction", "WorstCases", "direction_of", "more_is_worse", "worst_cases"]

_MORE_IS_WORSE = (
    "bce brier cce ce cer crossentropy deviation difference distance div divergence entropy err "
    "error errors fnr fpr hausdorff hinge huber imprecision inaccuracy incorrect kl kld kldiv "
    "logcosh logloss loss losses mae mape miss misses mistake mistakes mse msle nll penalty "
    "perplexity poisson residual rmse rmsle scce uncertainty wer wrong"
)
_LESS_IS_WORSE = (
    "acc accuracy agreement ap auc auroc bleu certainty conf confidence correct correctness dice dsc "
    "f1 f2 fbeta hit hits iou jaccard kappa likelihood map match mcc miou ncc npv overlap ppv prauc "
    "precision prob proba probability psnr r2 recall roc rocauc rouge score scores sensitivity "
    "similarity specificity ssim success tnr tpr"
)
# Long enough to be meant wherever they stand: `meanabsoluteerror`.
_MORE_INSIDE = ("error", "loss", "entropy", "distance")
_LESS_INSIDE = ("accuracy", "precision", "recall", "score", "similarity")
_WORD = re.compile(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+")


@dataclass(frozen=True)
class Direction:
    """Which values of a function are the worst, and who said so."""

    descending: bool
    """Whether the largest are."""
    told_by: Literal["function", "name", "nobody"]

    @property
    def worst(self) -> str:
        return "largest" if self.descending else "smallest"


@dataclass(frozen=True)
class WorstCases:
    """Rows of a table, the worst first."""

    rows: Sequence[int]
    by: str
    direction: Direction
    missing: int
    """How many of the rows have no value (NaN): they are the first."""


def more_is_worse(name: str) -> bool | None:
    """Whether more of a metric is worse, by its name; None when the name does not tell.

    >>> more_is_worse("sparse categorical ce"), more_is_worse("IoU"), more_is_worse("dice_loss")
    (True, False, True)
    >>> more_is_worse("volume") is None
    True
    """
    words = {word.lower() for word in _WORD.findall(name)} | set(
        re.findall(r"[a-z0-9]+", name.lower())
    )
    if re.search(r"neg(ative)?log", re.sub(r"[^a-z]", "", name.lower())):
        return True  # of a likelihood or a probability
    # A loss that is made of a score is a loss: these come first.
    for names, inside, answer in (
        (_MORE_IS_WORSE, _MORE_INSIDE, True),
        (_LESS_IS_WORSE, _LESS_INSIDE, False),
    ):
        if not words.isdisjoint(names.split()) or any(part in name.lower() for part in inside):
            return answer
    return None


def direction_of(table: PointTable, name: str) -> Direction:
    """By the function's own `higher_is_better`, else by its name, else more is taken to be worse."""
    better = table.higher_is_better(name)
    if better is not None:
        return Direction(not better, "function")
    worse = more_is_worse(name)
    return Direction(worse is not False, "nobody" if worse is None else "name")


def worst_cases(table: PointTable, by: str | None = None, most: int = 1000) -> WorstCases | None:
    """The worst rows of a table by one of its columns, else by the first; None without a column.

    Those without a value (NaN) are the worst of all. Rows of the same value stay in their order.
    """
    if by is None:
        if not table.columns:
            return None
        by = table.columns[0]
    values, direction = table.values(by), direction_of(table, by)
    has_value = ~np.isnan(values)
    rows = np.lexsort((-values if direction.descending else values, has_value))[:most]
    return WorstCases(rows.tolist(), by, direction, missing=int(np.sum(~has_value[rows])))
