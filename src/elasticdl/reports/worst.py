"""Which data points are the worst: the order in which somebody looks for what went wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from elasticdl.reports.table import PointTable

__all__ = ["WorstCases", "more_is_worse", "worst_cases"]

_MORE_IS_WORSE = (
    "bce brier cce ce cer deviation difference distance div divergence entropy err error errors "
    "hausdorff hinge huber kl kld kldiv logcosh logloss loss losses mae mape miss misses mse msle nll "
    "penalty perplexity poisson residual rmse rmsle scce uncertainty wer crossentropy fpr fnr"
)
_LESS_IS_WORSE = (
    "acc accuracy agreement ap auc auroc bleu confidence correct correctness dice dsc f1 f2 fbeta hit "
    "hits iou jaccard kappa likelihood map match mcc miou ncc npv overlap ppv precision prauc psnr r2 "
    "recall roc rocauc rouge score scores sensitivity similarity specificity ssim success tnr tpr"
)
# Long enough to be meant wherever they stand: `meanabsoluteerror`.
_MORE_INSIDE = ("error", "loss", "entropy", "distance")
_LESS_INSIDE = ("accuracy", "precision", "recall", "score", "similarity")
_WORD = re.compile(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+")


@dataclass(frozen=True)
class WorstCases:
    """Rows of a table, the worst first."""

    rows: Sequence[int]
    by: str
    descending: bool
    known: bool
    """Whether the name told what is worse; otherwise more was taken to be."""


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
    # A loss that is made of a score is a loss: these come first.
    for names, inside, answer in (
        (_MORE_IS_WORSE, _MORE_INSIDE, True),
        (_LESS_IS_WORSE, _LESS_INSIDE, False),
    ):
        if not words.isdisjoint(names.split()) or any(part in name.lower() for part in inside):
            return answer
    return None


def worst_cases(table: PointTable, by: str | None = None, most: int = 1000) -> WorstCases | None:
    """The worst rows of a table by one of its columns, else by the first; None without a column.

    Rows of the same value stay in their order, those without a value (NaN) come last.
    """
    if by is None:
        if not table.columns:
            return None
        by = table.columns[0]
    values = table.values(by)
    worse = more_is_worse(by)
    descending = worse is not False
    order = np.argsort(-values if descending else values, kind="stable")
    return WorstCases(order[:most].tolist(), by, descending, known=worse is not None)
