"""The built-in models of tables: their names, and where they are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["ALIASES", "BUILT_IN", "targets_of", "task_of"]

BUILT_IN = Path(__file__).parent / "zoo"
"""Their model zoo."""

ALIASES: Mapping[str, str] = {
    f"{name}{kind.capitalize()}": f"{kind}.{model}"
    for kind in ("classifier", "regressor")
    for name, model in (
        ("DNN", "DNN"),
        ("Linear", "Linear"),
        ("WideAndDeep", "WideAndDeep"),
        ("DNNLinearCombined", "WideAndDeep"),
    )
}
"""Names that SQLFlow and Estimators have for them."""


def task_of(model_def: str) -> str | None:
    """What a model predicts, by its name; None when that does not say.

    >>> task_of("regressor.DNN"), task_of("DNNClassifier"), task_of("mnist.Model")
    ('regression', 'classification', None)
    """
    name = ALIASES.get(model_def, model_def).lower()
    if "regress" in name:
        return "regression"
    return "classification" if "classifi" in name else None


def targets_of(model_def: str) -> tuple[str, ...] | None:
    """The inputs of a model that has several, as `COLUMN ... FOR` names them; none when it has one.

    Of a model that is not built in nobody knows: None.

    >>> targets_of("WideAndDeepRegressor"), targets_of("regressor.DNN"), targets_of("mnist.Model")
    (('linear', 'dnn'), (), None)
    """
    name = ALIASES.get(model_def, model_def)
    if name not in ALIASES.values():
        return None
    return ("linear", "dnn") if name.endswith(".WideAndDeep") else ()
