"""Arrow's types as columns of a database, and batches made plain enough for any of them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from elasticdl.errors import InvalidValue

__all__ = ["fits", "flat", "flat_schema", "plain", "plain_type", "sql_type", "storage"]

_NAMES = {
    # by dialect: boolean, 16, 32 and 64 bit integers, huge ones, float, double, text, bytes, time
    "duckdb": "BOOLEAN SMALLINT INTEGER BIGINT UBIGINT REAL DOUBLE VARCHAR BLOB TIME",
    "sqlite": "BOOLEAN INTEGER INTEGER INTEGER INTEGER REAL REAL TEXT BLOB TEXT",
    "postgres": "BOOLEAN SMALLINT INTEGER BIGINT NUMERIC(20,0) REAL FLOAT8 TEXT BYTEA TIME",
    # MySQL shows a FLOAT with six digits, which would look like another number.
    "mysql": "BOOLEAN SMALLINT INTEGER BIGINT DECIMAL(20,0) DOUBLE DOUBLE LONGTEXT LONGBLOB TIME(6)",
}
_TIMESTAMPS = {
    "duckdb": "TIMESTAMP",
    "sqlite": "TIMESTAMP",
    "postgres": "TIMESTAMP",
    "mysql": "DATETIME(6)",
}


def storage(kind: pa.DataType) -> pa.DataType:
    """What a type is made of: an extension's storage, a dictionary's values."""
    if isinstance(kind, pa.BaseExtensionType):
        return storage(kind.storage_type)
    return storage(kind.value_type) if pa.types.is_dictionary(kind) else kind


def sql_type(dialect: str, kind: pa.DataType) -> str:
    """The column type for values of an Arrow type.

    >>> sql_type("postgres", pa.float64())
    'FLOAT8'

    Raises:
      InvalidValue: no column can hold them.
    """
    kind, types = storage(kind), pa.types
    boolean, small, middle, large, huge, single, double, text, data, time = _NAMES[dialect].split()
    if types.is_integer(kind):
        size = kind.bit_width * (2 if types.is_unsigned_integer(kind) else 1)
        return small if size <= 16 else middle if size <= 32 else large if size <= 64 else huge
    if types.is_floating(kind):
        return double if kind.bit_width == 64 else single
    if types.is_decimal(kind):
        return "NUMERIC" if dialect == "sqlite" else f"DECIMAL({kind.precision},{kind.scale})"
    if types.is_timestamp(kind):
        zoned = kind.tz is not None and dialect in ("duckdb", "postgres")
        return "TIMESTAMP WITH TIME ZONE" if zoned else _TIMESTAMPS[dialect]
    if _is_bytes(kind):
        return data
    if _is_text(kind) or types.is_null(kind):
        return text
    for is_it, name in (
        (types.is_boolean, boolean),
        (types.is_date, "DATE"),
        (types.is_time, time),
    ):
        if is_it(kind):
            return name
    raise InvalidValue(
        f"A value of type {kind} fits into no column: leave it out, or make a text of it with CAST."
    )


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _is_bytes(kind: pa.DataType) -> bool:
    tests = (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_fixed_size_binary,
        pa.types.is_binary_view,
    )
    return any(test(kind) for test in tests)


def fits(value: pa.DataType, column: pa.DataType) -> bool:
    """Whether values of one type can be put into an existing column of another without losing anything."""
    value, column = storage(value), storage(column)
    if pa.types.is_null(column):  # SQLite's, of no declared type
        return True
    if pa.types.is_boolean(value):
        return bool(pa.types.is_boolean(column) or pa.types.is_integer(column))
    if pa.types.is_integer(value):
        return _is_number(column)
    if pa.types.is_floating(value) or pa.types.is_decimal(value):
        return _is_number(column) and not pa.types.is_integer(column)
    if _is_text(value):
        return _is_text(column)
    return bool(pa.types.is_null(value) or value.id == column.id)


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of a column after `plain`."""
    kind = storage(kind)
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_null(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_uint64(kind):
        return pa.decimal128(20, 0)
    if pa.types.is_unsigned_integer(kind):
        return {8: pa.int16(), 16: pa.int32(), 32: pa.int64()}[kind.bit_width]
    return pa.int16() if pa.types.is_int8(kind) else kind


def plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same values in types that every driver writes."""
    columns = []
    for column in batch.columns:
        if isinstance(column, pa.ExtensionArray):
            column = column.storage
        kind = plain_type(column.type)
        columns.append(column if column.type == kind else pc.cast(column, kind))
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def flat_schema(schema: pa.Schema) -> pa.Schema:
    """A schema without extensions, dictionaries and what a driver noted beside the columns."""
    return pa.schema([pa.field(field.name, storage(field.type)) for field in schema])


def flat(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The same rows by `flat_schema`."""
    columns = []
    for column, field in zip(batch.columns, schema, strict=True):
        if isinstance(column, pa.ExtensionArray):
            column = column.storage
        columns.append(column if column.type == field.type else pc.cast(column, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)
