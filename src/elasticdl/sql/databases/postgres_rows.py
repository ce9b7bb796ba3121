"""PostgreSQL's rows as Arrow: the driver's types made plain, and those that it does not know read as texts."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from elasticdl.sql.databases.column_types import storage
from elasticdl.sql.databases.names import quote

__all__ = ["converted", "readable", "schema_of"]

_CASTS = {"oid": "::bigint", "money": "::numeric::float8", "uuid": "::text"}
"""What the driver would read as something else than it is."""


def readable(sql: str, schema: pa.Schema) -> str:
    """The SELECT, with casts around the columns that the driver could not read."""
    casts = [_cast(field) for field in schema]
    if not any(casts):
        return sql
    inner = [f"c{number}" for number in range(len(casts))]
    outer = [
        f"{name}{cast} AS {quote('postgres', field.name)}"
        for name, cast, field in zip(inner, casts, schema, strict=True)
    ]
    return f"SELECT {', '.join(outer)} FROM (\n{sql}\n) AS read_as ({', '.join(inner)})"


def _cast(field: pa.Field) -> str:
    name = _database_type(field)
    if name in _CASTS:
        return _CASTS[name]
    if name == "numeric":
        return ""
    if isinstance(field.type, pa.OpaqueType):
        return "::text"
    if pa.types.is_list(field.type):
        inner = field.type.value_field
        if _database_type(inner) == "numeric":
            return "::float8[]"
        return "::text[]" if isinstance(inner.type, pa.BaseExtensionType) else ""
    return ""


def _database_type(field: pa.Field) -> str:
    return ((field.metadata or {}).get(b"POSTGRESQL:type") or b"").decode()


def schema_of(schema: pa.Schema) -> pa.Schema:
    """The plain types of what was read."""
    return pa.schema([pa.field(field.name, _plain_type(field)) for field in schema])


def _plain_type(field: pa.Field) -> pa.DataType:
    """A numeric of a fixed scale is a decimal; of any scale, it is a double."""
    if _database_type(field) != "numeric":
        return storage(field.type)
    modifier = int(field.metadata.get(b"POSTGRESQL:typmod", b"-1")) - 4
    precision, scale = (modifier >> 16) & 0xFFFF, modifier & 0x7FF
    if modifier < 0 or precision > 76 or scale > precision:
        return pa.float64()
    return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)


def converted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch by `schema_of`."""
    columns = []
    for column, field in zip(batch.columns, schema, strict=True):
        if isinstance(column, pa.ExtensionArray):
            column = column.storage
        columns.append(column if column.type == field.type else _convert(column, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _convert(column: Any, kind: pa.DataType) -> Any:
    if pa.types.is_decimal(kind):  # which knows no NaN
        column = pc.if_else(pc.match_substring(column, "n"), None, column)
    return pc.cast(column, kind)
