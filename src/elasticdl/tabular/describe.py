"""A plan in words: what each column becomes."""

from __future__ import annotations

from collections.abc import Sequence

from elasticdl.tabular.plan import Feature, FeaturePlan, Label

__all__ = ["describe"]


def describe(plan: FeaturePlan) -> list[tuple[str, str, str]]:
    """Rows of (column, its type, what it becomes); the label is the last."""
    sources = {column.name: column.source for column in plan.columns}
    rows = [
        (
            ", ".join(feature.columns),
            ", ".join(sources[name] for name in feature.columns),
            _words(feature) + (f", for {feature.target}" if feature.target else ""),
        )
        for feature in plan.features
    ]
    if plan.label is not None:
        rows.append((plan.label.name, plan.label.source, _label(plan.label)))
    return rows


def _words(feature: Feature) -> str:
    params = feature.params
    if feature.kind == "number":
        return (
            f"number, normalised (mean {params['mean']:.6g}){_null(params['missing'], 'the mean')}"
        )
    if feature.kind == "flag":
        return f"0 or 1{_null(params['missing'], 'the mean')}"
    if feature.kind == "time":
        parts = "time, normalised; day of the week, month" + (", hour" if params["hour"] else "")
        return parts + _null(params["missing"], "the mean time")
    if feature.kind == "vector":
        return f"{params['size']} numbers, normalised"
    return f"{_category(feature)}, {_encoded(feature)}"


def _category(feature: Feature) -> str:
    params = feature.params
    if feature.kind == "vocabulary":
        return f"one of {len(params['vocabulary']):,} values ({_some(params['vocabulary'])})"
    return {
        "hash": f"hashed into {params['size']:,} buckets",
        "id": f"one of {params['size']:,} numbers",
        "bucket": f"in {params['size']:,} buckets",
        "cross": f"crossed, hashed into {params['size']:,} buckets",
        "sequence": f"several of {params['size']:,} numbers",
    }[feature.kind]


def _encoded(feature: Feature) -> str:
    if feature.params["encoding"] == "embedding":
        return f"embedded in {feature.params['dimension']} dimensions"
    return "one-hot" if feature.kind != "sequence" else "multi-hot"


def _null(missing: bool, instead: str) -> str:
    return f"; NULL: {instead} and an indicator" if missing else ""


def _label(label: Label) -> str:
    if label.classes:
        return f"label of {len(label.classes):,} classes ({_some(label.classes)})"
    return f"label, a number (mean {label.mean:.6g}, deviation {label.std:.6g})"


def _some(values: Sequence[object]) -> str:
    shown = ["NULL or empty" if value == "" else str(value) for value in values[:5]]
    return ", ".join(one if len(one) < 30 else one[:27] + "..." for one in shown) + (
        ", ..." if len(values) > 5 else ""
    )
