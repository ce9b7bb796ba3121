"""`SELECT ... PREDICT`: the rows with what the model predicts beside them, into a table or back to who asked."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from elasticdl import api
from elasticdl.errors import InvalidValue, StatementError, Stopped, UserError
from elasticdl.job.config import JobConfig
from elasticdl.runtime.result import Result
from elasticdl.sql.attributes import Attributes, PredictOptions
from elasticdl.sql.context import Context
from elasticdl.sql.databases.base import Target
from elasticdl.sql.databases.names import names_meant
from elasticdl.sql.decode import Decoder
from elasticdl.sql.outcome import Outcome, counted
from elasticdl.sql.places import in_select
from elasticdl.sql.registry import Version
from elasticdl.sql.rows import Rows
from elasticdl.sql.spool import Spool, plain_schema, read_spool, write_rows
from elasticdl.sql.statements import Predict, WithSelect
from elasticdl.tabular.arrays import check_columns
from elasticdl.tabular.plan import FeaturePlan
from elasticdl.tabular.types import find

__all__ = ["outputs", "predict", "run_predictions"]

_TAKEN = (
    "The SELECT has a column {!r} already, which is what the prediction is called. Leave it out, or rename it "
    "with AS."
)
LEASE = 16
"""Minibatches of a part: some 65,000 rows."""


def predict(context: Context, statement: Predict) -> Outcome:
    """Predict, into `table.column` or as rows."""
    options = Attributes(statement).predict()
    version = context.find(statement.using)
    if statement.target:
        return _into_table(context, statement, version, options)
    return _as_rows(context, statement, version, options)


def _into_table(
    context: Context, statement: Predict, version: Version, options: PredictOptions
) -> Outcome:
    *table, column = names_meant(context.database.dialect, statement.target)
    first, last = statement.target[0].span.start, statement.target[-1].span.end
    if not table:
        raise StatementError(
            f"PREDICT wants table.column, as in PREDICT results.{column}: it got {column!r} alone.",
            first,
            last,
        )
    try:
        target = context.database.target(
            statement.select, table, column, overwrite=options.overwrite
        )
    except UserError as error:
        raise StatementError(str(error), first, last) from error
    with context.job() as directory, target:
        rows = target.rows()
        _check_replaced(statement, version, target)
        decoder = _decoder(version, options, rows.schema, column, statement)
        spool = _spooled(statement, rows, directory, version, target.hidden)
        result = _predicted(context, statement, version, spool, directory, options)
        written = target.write(_beside(spool, directory, decoder))
    where = ".".join([*table, column])
    message = f"Predicted {counted(written)} into {where} with {version}."
    return Outcome(statement, message=message, result=result)


def _as_rows(
    context: Context, statement: Predict, version: Version, options: PredictOptions
) -> Outcome:
    """The rows come from files that are removed when they are taken."""
    kept = Path(tempfile.mkdtemp(prefix="elasticdl-rows-"))
    try:
        with context.job() as directory:
            rows = context.select(statement)
            schema = plain_schema(rows.schema)
            label = version.card["label"]
            decoder = _decoder(version, options, schema, f"predicted_{label}", statement)
            spool = _spooled(statement, rows, kept, version)
            result = _predicted(context, statement, version, spool, directory, options)
            outputs = Path(directory, "predictions").rename(kept / "predictions")
        batches = _beside(spool, outputs.parent, decoder)
        whole = pa.schema([*schema, *decoder.fields])
        taken = Rows(whole, batches, lambda: shutil.rmtree(kept, ignore_errors=True))
    except BaseException:
        shutil.rmtree(kept, ignore_errors=True)
        raise
    message = f"Predicted {counted(spool.num_rows)} with {version}."
    return Outcome(statement, rows=taken, message=message, result=result)


def _check_replaced(statement: Predict, version: Version, target: Target) -> None:
    """Refuse a target that a selected column is called like, unless it is that very column, and no feature."""
    if target.replaced is None:
        return
    plan = FeaturePlan.from_json(version.card["plan"])
    first, last = statement.target[0].span.start, statement.target[-1].span.end
    if find(target.replaced, [column.name for column in plan.columns]) is not None:
        raise StatementError(
            f"{target.replaced!r} is a column that {version} predicts from: predictions cannot take its place.",
            first,
            last,
        )
    if not target.in_place:
        raise StatementError(_TAKEN.format(target.replaced), first, last)


def _predicted(
    context: Context,
    statement: Predict,
    version: Version,
    spool: Spool,
    directory: Path,
    options: PredictOptions,
) -> Result:
    try:
        return run_predictions(context, version, spool, directory, options.batch_size)
    except UserError as error:
        raise in_select(statement, error) from error


def _decoder(
    version: Version,
    options: PredictOptions,
    schema: pa.Schema,
    column: str,
    statement: Predict,
) -> Decoder:
    plan = FeaturePlan.from_json(version.card["plan"])
    decoder = Decoder(plan, column, probabilities=options.probabilities)
    if taken := [field.name for field in decoder.fields if field.name in schema.names]:
        span = statement.select_span
        raise StatementError(_TAKEN.format(taken[0]), span.start, span.end)
    return decoder


def _spooled(
    statement: WithSelect,
    rows: Rows,
    directory: Path,
    version: Version,
    hidden: Sequence[str] = (),
) -> Spool:
    plan = FeaturePlan.from_json(version.card["plan"])
    theirs = pa.schema([field for field in rows.schema if field.name not in hidden])
    try:
        with rows:
            _check_once(theirs.names)
            check_columns(theirs, plan.columns)
            return write_rows(rows, directory / "rows.arrow")
    except UserError as error:
        raise in_select(statement, error) from error


def _check_once(names: Sequence[str]) -> None:
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidValue(
            f"The column {twice[0]!r} is selected more than once. Give one of them another name with AS."
        )


def run_predictions(
    context: Context, version: Version, spool: Spool, directory: Path, batch_size: int
) -> Result:
    """The model's outputs for spooled rows, as files in `directory`."""
    if not spool.num_rows:
        (directory / "predictions").mkdir()
        return Result(command="predict", status="completed")
    config = JobConfig.parse(
        "predict",
        {
            "trained_model": str(version.path),
            "prediction_data": str(spool.path),
            "output": str(directory / "predictions"),
            "output_format": "parquet",
            "minibatch_size": batch_size,
            "num_minibatches_per_task": LEASE,
            "log_level": context.shown_level,
        },
    )
    result = api.run(config, context.objects)
    if result.status != "completed":
        raise Stopped("The prediction was stopped: nothing was written.", result.status)
    return result


def outputs(directory: Path) -> Iterator[pa.Array]:
    """The outputs of `run_predictions`, in the order of the rows."""
    for part in sorted((directory / "predictions").glob("part-*.parquet")):
        with pq.ParquetFile(part) as file:
            for batch in file.iter_batches(65_536):
                yield batch.column(0)


def _beside(spool: Spool, directory: Path, decoder: Decoder) -> Iterator[pa.RecordBatch]:
    """Rows and predictions, batch by batch."""
    batches = read_spool(spool.path)
    waiting: list[pa.RecordBatch] = []
    for predicted in outputs(directory):
        rows = _take(waiting, batches, len(predicted))
        table = pa.Table.from_batches(rows)
        for field, column in zip(decoder.fields, decoder.decode(predicted), strict=True):
            table = table.append_column(field, column)
        yield from table.combine_chunks().to_batches()


def _take(
    waiting: list[pa.RecordBatch], batches: Iterator[pa.RecordBatch], count: int
) -> Sequence[pa.RecordBatch]:
    """The next `count` rows; what is left of a batch waits."""
    taken = []
    while count:
        batch = waiting.pop() if waiting else next(batches)
        part = batch.slice(0, count)
        if part.num_rows < batch.num_rows:
            waiting.append(batch.slice(count))
        taken.append(part)
        count -= part.num_rows
    return taken
