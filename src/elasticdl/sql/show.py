"""What there is: `SHOW MODELS`, `SHOW TRAIN`, `DESCRIBE MODEL`, `DROP MODEL`."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from elasticdl.errors import UnknownName
from elasticdl.sql.context import Context
from elasticdl.sql.outcome import Outcome
from elasticdl.sql.places import at
from elasticdl.sql.rows import Rows
from elasticdl.sql.statements import DescribeModel, DropModel, ShowModels, ShowTrain
from elasticdl.tabular.derive import describe
from elasticdl.tabular.plan import FeaturePlan

__all__ = ["describe_model", "drop_model", "features_of", "show_models", "show_train"]

_SHOWN = ("name", "version", "model", "label", "task", "rows", "metrics", "created", "from")


def show_models(context: Context, statement: ShowModels) -> Outcome:
    """Every version of every model, the newest of a name first."""
    names = context.registry.names()
    if statement.like is not None:
        pattern = _like(str(statement.like))
        names = [name for name in names if pattern.fullmatch(name)]
    found = [one for name in names for one in reversed(context.registry.versions(name))]
    columns: dict[str, list[Any]] = {key: [one.card.get(key) for one in found] for key in _SHOWN}
    columns["metrics"] = [_metrics(one.card.get("metrics") or {}) for one in found]
    types = {"version": pa.int64(), "rows": pa.int64()}
    table = pa.table(
        {key: pa.array(values, types.get(key, pa.string())) for key, values in columns.items()}
    )
    return Outcome(statement, Rows.of(table), f"{_count(len(names))} in {context.registry.root}.")


def show_train(context: Context, statement: ShowTrain) -> Outcome:
    """The statement that trained a model."""
    version = context.find(statement.name)
    table = pa.table({"model": [str(version)], "statement": [version.card["statement"]]})
    return Outcome(statement, Rows.of(table))


def describe_model(context: Context, statement: DescribeModel) -> Outcome:
    """All that is known of a model."""
    version = context.find(statement.name)
    card = version.card
    plan = FeaturePlan.from_json(card["plan"])
    assert plan.label is not None
    facts = [
        ("model", str(version)),
        ("kind", card["model_def"]),
        (
            "parameters",
            ", ".join(f"{k}={v!r}" for k, v in card["params"].items()) or "its defaults",
        ),
        ("task", card["task"]),
        ("label", f"{plan.label.name} ({plan.label.source})"),
        *([("classes", ", ".join(map(str, plan.label.classes)))] if plan.label.classes else []),
        *features_of(plan),
        ("rows", f"{card['rows']:,}"),
        ("validation rows", f"{card['validation_rows']:,}"),
        ("epochs", str(card["epochs"])),
        *((f"validation {name}", f"{value:.6g}") for name, value in card["metrics"].items()),
        ("created", card["created"]),
        *([("trained from", card["from"])] if card.get("from") else []),
        ("seed", str(card["seed"])),
        ("directory", str(version.path)),
        ("statement", card["statement"]),
    ]
    return Outcome(statement, Rows.of(_pairs(facts)))


def features_of(plan: FeaturePlan) -> list[tuple[str, str]]:
    """What each column becomes, in words; without the label."""
    label = plan.label.name if plan.label is not None else None
    return [
        (f"feature {column}", f"{source}: {words}")
        for column, source, words in describe(plan)
        if column != label
    ]


def drop_model(context: Context, statement: DropModel) -> Outcome:
    """Remove a model, or one version of it."""
    try:
        dropped = context.registry.drop(str(statement.name))
    except UnknownName as error:
        if statement.if_exists:
            return Outcome(statement, message=f"There is no model {statement.name}.")
        raise at(statement.name, error) from error
    except ValueError as error:
        raise at(statement.name, error) from error
    return Outcome(statement, message=f"Dropped {', '.join(map(str, dropped))}.")


def _count(number: int) -> str:
    return "1 model" if number == 1 else f"{number} models"


def _pairs(facts: Sequence[tuple[str, str]]) -> pa.Table:
    return pa.table({"what": [a for a, _ in facts], "value": [b for _, b in facts]})


def _metrics(metrics: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in metrics.items())


def _like(pattern: str) -> re.Pattern[str]:
    """SQL's % and _ as a regular expression; capital letters do not matter."""
    shell = re.sub(r"[\[\]*?]", lambda m: f"[{m[0]}]", pattern).replace("%", "*").replace("_", "?")
    return re.compile(fnmatch.translate(shell), re.IGNORECASE)
