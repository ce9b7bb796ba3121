"""`elasticdl sql export`: the rows of a SELECT as RecordIO of `tf.Example`, with their schema beside them.

A training reads them with `--input_fn=sqlflow.elasticdl_input_function`, which goes by the schema.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from elasticdl.data.shard_writer import ShardWriter
from elasticdl.errors import DataError, UnknownName, nearest
from elasticdl.runtime.standard_input import SCHEMA
from elasticdl.sql.databases import open_database
from elasticdl.sql.selects import checked_select
from elasticdl.sql.spool import read_spool, write_rows
from elasticdl.storage import place, write_file
from elasticdl.tabular.derive import Profile, derive
from elasticdl.tabular.plan import FeaturePlan

__all__ = ["Exported", "export"]


@dataclass(frozen=True)
class Exported:
    """What was written."""

    num_records: int
    files: tuple[str, ...]
    schema: str
    label: str | None


def export(
    db: str | None,
    select: str,
    output: str,
    *,
    label: str | None = None,
    has_label: bool = True,
    task: str | None = None,
    records_per_shard: int = 65_536,
    tell: Callable[[str], None] = lambda text: None,
) -> Exported:
    """Write the rows of a SELECT to files.

    Args:
      db: the address of the database.
      select: the statement, which the database gets as it is.
      output: a directory, here or at an fsspec address, without shards in it.
      label: the column to be predicted; the last one by default.
      has_label: False for rows to be predicted, which have none.
      task: classification or regression; by the label's type by default.
      records_per_shard: how many go into one file.
      tell: hears remarks.

    Raises:
      OutputExists: the directory holds shards already.
      DataError: there are no rows, or they cannot be features.
    """
    with tempfile.TemporaryDirectory(prefix="elasticdl-sql-") as directory:
        spool = Path(directory, "rows.arrow")
        database = open_database(db)
        try:
            rows = database.select(checked_select(select, database.dialect, "What is exported"))
            profile = Profile(rows.schema)
            names = rows.schema.names
            if has_label and label is None:
                label = names[-1]
                tell(f"The label is {label}, the last selected column.")
            if label is not None and label not in names:
                raise UnknownName(f"The label {label!r} is not selected. {nearest(label, names)}")
            write_rows(rows, spool, profile.add)
        finally:
            database.close()
        if not profile.num_rows:
            raise DataError("The SELECT gave no rows: there is nothing to export.")
        plan = derive(profile, label=label if has_label else None, task=task)
        for remark in plan.remarks:
            tell(remark)
        files = _write(spool, plan, output, records_per_shard)
    schema = place(output) / SCHEMA
    text = json.dumps({"version": 1, "select": select, "plan": plan.to_json()}, indent=2)
    write_file(schema, text.encode())
    return Exported(profile.num_rows, files, str(schema), label)


def _write(spool: Path, plan: FeaturePlan, output: str, records_per_shard: int) -> tuple[str, ...]:
    from elasticdl.tabular.inputs import to_examples

    with ShardWriter(output, records_per_shard, "snappy") as writer:
        for batch in read_spool(spool):
            for record in to_examples(batch, plan, with_label=plan.label is not None):
                writer.write(record)
        return writer.commit()
