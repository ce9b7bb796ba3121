"""`SELECT ... EVALUATE`: the metrics of a model on the rows of a SELECT."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from elasticdl import api
from elasticdl.errors import OutputExists, StatementError, UserError, nearest
from elasticdl.job.config import JobConfig
from elasticdl.sql.attributes import Attributes
from elasticdl.sql.context import Context
from elasticdl.sql.databases.names import names_meant
from elasticdl.sql.labels import LabelCheck
from elasticdl.sql.outcome import Outcome, counted
from elasticdl.sql.places import in_select
from elasticdl.sql.registry import Version
from elasticdl.sql.rows import Rows
from elasticdl.sql.spool import Spool, write_rows
from elasticdl.sql.statements import Evaluate, Explain
from elasticdl.tabular.arrays import check_columns
from elasticdl.tabular.plan import FeaturePlan

__all__ = ["check_free", "evaluate", "give", "with_label"]


def evaluate(context: Context, statement: Evaluate) -> Outcome:
    """The task's usual metrics, a row each."""
    options = Attributes(statement).evaluate()
    check_free(context, statement, options.overwrite, "evaluate.overwrite")
    version = context.find(statement.using)
    with context.job() as directory:
        spool = with_label(context, statement, version, directory)
        config = JobConfig.parse(
            "evaluate",
            {
                "trained_model": str(version.path),
                "validation_data": str(spool.path),
                "minibatch_size": options.batch_size,
                "log_level": context.shown_level,
            },
        )
        result = api.run(config, context.objects)
    names, values = list(result.metrics), [float(v) for v in result.metrics.values()]
    table = pa.table({"metric": names, "value": pa.array(values, pa.float64())})
    message = f"Evaluated {version} on {counted(spool.num_rows)}."
    return give(
        context, statement, Outcome(statement, Rows.of(table), message, result), options.overwrite
    )


def with_label(
    context: Context, statement: Evaluate | Explain, version: Version, directory: Path
) -> Spool:
    """The rows of the SELECT in a file, their label under the name that it had in the training."""
    plan = FeaturePlan.from_json(version.card["plan"])
    assert plan.label is not None
    rows = context.select(statement)
    rows = _renamed(rows, statement, plan.label.name)
    try:
        check_columns(rows.schema, [*plan.columns, *plan.label_columns])
        spool = write_rows(rows, directory / "rows.arrow", LabelCheck(plan))
    except UserError as error:
        raise in_select(statement, error) from error
    if not spool.num_rows:
        span = statement.select_span
        raise StatementError("The SELECT gave no rows.", span.start, span.end)
    return spool


def _renamed(rows: Rows, statement: Evaluate | Explain, label: str) -> Rows:
    word = statement.label
    if word is None or str(word) == label:
        return rows
    if str(word) not in rows.schema.names:
        known = nearest(str(word), rows.schema.names)
        raise StatementError(
            f"The label {str(word)!r} is not selected. {known}", word.span.start, word.span.end
        )
    # A column that has the label's name by chance is not it.
    kept = [name for name in rows.schema.names if name != label]
    fields = [rows.schema.field(name) for name in kept]
    schema = pa.schema(
        [field.with_name(label) if field.name == str(word) else field for field in fields]
    )
    batches = (
        pa.RecordBatch.from_arrays([batch.column(name) for name in kept], schema=schema)
        for batch in rows
    )
    return Rows(schema, batches, rows.close)


def check_free(context: Context, statement: Evaluate | Explain, overwrite: bool, key: str) -> None:
    """Refuse a table that cannot be written before anything is computed for it."""
    if not statement.into:
        return
    table = names_meant(context.database.dialect, statement.into)
    first, last = statement.into[0].span.start, statement.into[-1].span.end
    try:
        context.database.check_table(table, replace=overwrite)
    except OutputExists as error:
        raise StatementError(
            f"The table {'.'.join(table)} exists already. Name another, or say WITH {key}=true to replace it.",
            first,
            last,
        ) from error
    except UserError as error:
        raise StatementError(str(error), first, last) from error


def give(
    context: Context, statement: Evaluate | Explain, outcome: Outcome, overwrite: bool
) -> Outcome:
    """The rows as they are, or in the table that INTO names."""
    if not statement.into:
        return outcome
    assert outcome.rows is not None
    table = names_meant(context.database.dialect, statement.into)
    try:
        context.database.write_table(table, outcome.rows, replace=overwrite)
    except UserError as error:
        first, last = statement.into[0].span.start, statement.into[-1].span.end
        raise StatementError(str(error), first, last) from error
    message = f"{outcome.message} Written to {'.'.join(table)}."
    return Outcome(statement, None, message, outcome.result)
