"""Models of tables: any model of a zoo behind layers that take the raw columns of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from elasticdl.contract.load import load_spec
from elasticdl.contract.spec import Spec
from elasticdl.errors import InvalidValue
from elasticdl.tabular.plan import FeaturePlan

__all__ = ["STANDARD_INPUT", "load_table_spec"]

STANDARD_INPUT = "sqlflow.elasticdl_input_function"
"""The dataset function that goes by the plan. It is part of ElasticDL; a zoo need not have it."""

_DEFAULTS: Mapping[str | None, Mapping[str, Any]] = {
    "classification": {
        "loss": "sparse_categorical_crossentropy",
        "optimizer": "adam",
        "eval_metrics_fn": ["accuracy"],
    },
    "regression": {"loss": "mse", "optimizer": "adam", "eval_metrics_fn": ["mae"]},
    None: {},
}


def load_table_spec(
    model: Any,
    plan: FeaturePlan,
    *,
    model_params: Mapping[str, Any] | None = None,
    dataset_fn: Any = None,
    **given: Any,
) -> Spec:
    """A Spec whose model takes the plan's columns as they are; its own input is made of them inside.

    Takes what `load_spec` takes. What a model of tables needs and the zoo's lacks has defaults: a loss, an
    optimizer, metrics.
    """
    from elasticdl.tabular.inputs import TableBatches
    from elasticdl.tabular.layers import wrap

    task = plan.label.task if plan.label is not None else None
    spec = load_spec(
        model,
        model_params=model_params,
        defaults=_DEFAULTS[task],
        offers=_offers(plan),
        **given,
    )
    if "num_classes" in spec.accepted:
        _check_classes((model_params or {}).get("num_classes"), plan)
    build = spec.build_model
    # A loss of one's own may not take labels of another type than the outputs.
    batches = TableBatches(plan, exact="label_dtype" in spec.accepted)
    return replace(spec, build_model=lambda: wrap(build, plan), batches=batches)


def _check_classes(given: Any, plan: FeaturePlan) -> None:
    assert plan.label is not None
    number = len(plan.label.classes)
    if given not in (None, number) and (given, number) != (
        1,
        2,
    ):  # one probability tells two classes
        raise InvalidValue(
            f"Invalid num_classes {given!r}: the label {plan.label.name!r} has {number} classes. Leave it out."
        )


def _offers(plan: FeaturePlan) -> dict[str, Any]:
    """What a model may want to know of the label."""
    if plan.label is None:
        return {}
    if plan.label.task == "classification":
        return {"num_classes": len(plan.label.classes)}
    label = plan.label
    return {"label_mean": label.mean, "label_std": label.std, "label_dtype": label.dtype}
