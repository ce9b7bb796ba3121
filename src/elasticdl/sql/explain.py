"""`SELECT ... EXPLAIN`: which columns a model goes by.

The importance of a column is what becomes worse when its values are exchanged between rows: the loss where the label is
selected too, else how far the predictions move. All of it is one ordinary prediction, of the rows and of copies of them
in each of which one column is exchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elasticdl.errors import InvalidValue, StatementError, UserError, nearest
from elasticdl.sql.attributes import Attributes, ExplainOptions
from elasticdl.sql.context import Context
from elasticdl.sql.decode import class_probabilities, matrix
from elasticdl.sql.evaluate import check_free, give, with_label
from elasticdl.sql.outcome import Outcome, counted
from elasticdl.sql.places import at, in_select
from elasticdl.sql.predict import outputs, run_predictions
from elasticdl.sql.registry import Version
from elasticdl.sql.rows import Rows
from elasticdl.sql.spool import Spool, read_spool, write_rows
from elasticdl.sql.statements import Explain
from elasticdl.storage import place, storage_errors, write_file
from elasticdl.tabular.arrays import check_columns, to_arrays
from elasticdl.tabular.plan import FeaturePlan, Label

__all__ = ["explain"]

BATCH = 4096
_PNG = b"\x89PNG"
_SHAP = ("shap", "treeexplainer", "kernelexplainer", "deepexplainer", "explainer")
_EXPLAINERS = ("permutation", "SHAP")

Array = NDArray[Any]


@dataclass(frozen=True)
class _Importance:
    """A column's, and how much it varies from one exchange to the next."""

    column: str
    value: float
    deviation: float


def explain(context: Context, statement: Explain) -> Outcome:
    """The columns by their importance, as rows or a table, and as a picture."""
    options = Attributes(statement).explain()
    check_free(context, statement, options.overwrite, "explain.overwrite")
    _check_picture(statement, options)
    version = context.find(statement.using)
    plan = FeaturePlan.from_json(version.card["plan"])
    uses_shap = _uses_shap(statement)
    with context.job() as directory:
        rows, has_label = _sample(context, statement, version, plan, directory, options)
        if uses_shap:
            from elasticdl.sql.shap_values import shap_importance

            found = [
                _Importance(*one) for one in shap_importance(version, plan, rows, options.seed)
            ]
            meaning = "mean |SHAP value|"
        else:
            found = _permuted(context, version, plan, rows, has_label, directory, options)
            meaning = _meaning(plan, has_label)
    found.sort(key=lambda one: -one.value)
    picture = _draw(version, found, meaning, options)
    message = f"Importance in {version} ({meaning}) on {counted(rows.num_rows)}. Picture: {picture}"
    outcome = Outcome(statement, Rows.of(_table(found)), message)
    return give(context, statement, outcome, options.overwrite)


def _check_picture(statement: Explain, options: ExplainOptions) -> None:
    """A picture replaces pictures only."""
    if options.plot is None:
        return
    key = "explain.plot" if "explain.plot" in statement.attributes else "plot"
    where, word = place(options.plot), statement.attributes[key]
    with storage_errors(where, doing="read"):
        is_other = where.is_dir() or (where.exists() and not where.read_bytes().startswith(_PNG))
    if where.suffix.lower() != ".png" or is_other:
        problem = "exists and is no picture" if is_other else "does not end in .png"
        raise at(word, InvalidValue(f"The picture {options.plot!r} {problem}. Name another file."))


def _uses_shap(statement: Explain) -> bool:
    word = statement.explainer
    if word is None or str(word).lower() == "permutation":
        return False
    if str(word).lower() in _SHAP:
        return True
    raise StatementError(
        f"Unknown explainer {str(word)!r}. {nearest(str(word), _EXPLAINERS)}",
        word.span.start,
        word.span.end,
    )


def _sample(
    context: Context,
    statement: Explain,
    version: Version,
    plan: FeaturePlan,
    directory: Path,
    options: ExplainOptions,
) -> tuple[pa.Table, bool]:
    """Some rows of the SELECT, by chance, with the columns that matter; and whether the label is there."""
    assert plan.label is not None
    selected = context.select(statement)
    names = selected.schema.names
    selected.close()
    has_label = statement.label is not None or plan.label.name in names
    if has_label:
        spool = with_label(context, statement, version, directory)
    else:
        spool = _without_label(context, statement, plan, directory)
    wanted = [column.name for column in plan.columns] + [plan.label.name] * has_label
    chosen = np.arange(spool.num_rows)
    if spool.num_rows > options.rows:
        rng = np.random.default_rng(options.seed)
        chosen = np.sort(rng.choice(spool.num_rows, options.rows, replace=False))
    return pa.Table.from_batches(list(_chosen(spool, chosen, wanted))), has_label


def _without_label(
    context: Context, statement: Explain, plan: FeaturePlan, directory: Path
) -> Spool:
    rows = context.select(statement)
    try:
        check_columns(rows.schema, plan.columns)
    except UserError as error:
        raise in_select(statement, error) from error
    spool = write_rows(rows, directory / "rows.arrow")
    if not spool.num_rows:
        span = statement.select_span
        raise StatementError("The SELECT gave no rows.", span.start, span.end)
    return spool


def _chosen(spool: Spool, chosen: Array, names: list[str]) -> Iterator[pa.RecordBatch]:
    begin = 0
    for batch in read_spool(spool.path):
        end = begin + batch.num_rows
        here = chosen[(chosen >= begin) & (chosen < end)] - begin
        yield batch.select(names).take(pa.array(here))
        begin = end


def _permuted(
    context: Context,
    version: Version,
    plan: FeaturePlan,
    rows: pa.Table,
    has_label: bool,
    directory: Path,
    options: ExplainOptions,
) -> list[_Importance]:
    columns = [column.name for column in plan.columns]
    here = directory / "exchanged"
    here.mkdir()
    copies = Rows(rows.schema, _copies(rows, columns, options))
    spool = write_rows(copies, here / "rows.arrow")
    run_predictions(context, version, spool, here, BATCH)
    predicted = np.concatenate([matrix(part) for part in outputs(here)])
    score = _score(plan, rows, has_label)
    base, *others = np.split(predicted, len(predicted) // rows.num_rows)
    start = score(base, base)
    changes = np.array([score(other, base) - start for other in others])
    changes = changes.reshape(len(columns), options.repeats)
    return [
        _Importance(name, float(one.mean()), float(one.std()))
        for name, one in zip(columns, changes, strict=True)
    ]


def _copies(
    rows: pa.Table, columns: list[str], options: ExplainOptions
) -> Iterator[pa.RecordBatch]:
    """The rows, then for each column and repeat the rows with that column exchanged."""
    rng = np.random.default_rng(options.seed)
    yield from rows.to_batches()
    for name in columns:
        where = rows.schema.get_field_index(name)
        for _ in range(options.repeats):
            exchanged = rows.column(name).take(pa.array(rng.permutation(rows.num_rows)))
            changed = rows.set_column(where, rows.schema.field(where), exchanged)
            yield from changed.to_batches()


def _score(plan: FeaturePlan, rows: pa.Table, has_label: bool) -> Callable[[Array, Array], float]:
    """How wrong outputs are; without a label, how far they are from those of the rows as they are."""
    label = plan.label
    assert label is not None
    if not has_label:
        return lambda outputs, base: float(
            np.abs(_values(outputs, label) - _values(base, label)).mean()
        )
    (batch,) = rows.combine_chunks().to_batches()
    truth = to_arrays(batch, plan.label_columns)[label.name]
    if not label.classes:
        return lambda outputs, _: float(np.sqrt(np.mean((outputs[:, 0] - truth) ** 2)))
    places = _class_places(truth, label)

    def log_loss(outputs: Array, _: Array) -> float:
        probabilities = class_probabilities(outputs, label)
        chosen = probabilities[np.arange(len(places)), places]
        return float(-np.log(np.clip(chosen, 1e-7, 1)).mean())

    return log_loss


def _values(outputs: Array, label: Label) -> Array:
    return class_probabilities(outputs, label) if label.classes else outputs


def _class_places(truth: Array, label: Label) -> Array:
    known = {
        one.encode() if isinstance(one, str) else one: i for i, one in enumerate(label.classes)
    }
    found = [known.get(one) for one in truth.tolist()]
    if None in found:
        odd = truth[found.index(None)]
        raise StatementError(
            f"The label {label.name} has the value {odd!r}, which the model was not trained on. Leave such "
            "rows out with WHERE."
        )
    return np.array(found)


def _meaning(plan: FeaturePlan, has_label: bool) -> str:
    assert plan.label is not None
    if not has_label:
        return "mean change of the prediction"
    return "increase of the log loss" if plan.label.classes else "increase of the RMSE"


def _table(found: list[_Importance]) -> pa.Table:
    total = sum(max(0.0, one.value) for one in found) or 1.0
    return pa.table(
        {
            "feature": [one.column for one in found],
            "importance": [one.value for one in found],
            "deviation": [one.deviation for one in found],
            "share": [max(0.0, one.value) / total for one in found],
        }
    )


def _draw(version: Version, found: list[_Importance], meaning: str, options: ExplainOptions) -> str:
    """A picture of the columns that matter most, in the file that was asked for or beside the model."""
    from elasticdl.reports.drawing import BLUE, GREY, draw, shorten

    shown = list(reversed(found[:30]))

    def paint(figure: Any, axes: Any) -> None:
        names = [shorten(one.column, 30) for one in shown]
        axes.barh(range(len(shown)), [one.value for one in shown], color=BLUE)
        for height, one in enumerate(shown):
            ends = [one.value - one.deviation, one.value + one.deviation]
            axes.plot(ends, [height, height], color=GREY, linewidth=1)
        axes.set_yticks(range(len(shown)), names)
        axes.set_xlabel(meaning)
        axes.set_title(f"What {version} goes by", loc="left", fontsize=11)

    png = draw(7, 1.2 + 0.28 * len(shown), paint)
    where = place(options.plot) if options.plot else version.path / "explain.png"
    write_file(where, png)
    return str(where)
