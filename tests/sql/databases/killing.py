"""A process that predicts and is killed before its 1st, 2nd, 3rd ... order to the database.

Of all tables but the last only every third kill is tried. Run with: python killing.py URL SELECT TABLE ...
It starts with a table when it is given a line. For each kill it prints `killed`, and `done` when it came to the
end: until the next line it leaves the database to whoever looks at it.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from elasticdl.sql.databases import Target, open_database
from elasticdl.sql.databases.selection import read_selection
from elasticdl.sql.databases.url import read_address

DRIVERS = {
    "duckdb": "duckdb",
    "postgres": "adbc_driver_postgresql.dbapi",
    "mysql": "pymysql",
    "sqlite": "sqlite3",
}


def predictions(target: Target) -> Iterator[pa.RecordBatch]:
    for batch in target.rows():
        for start in range(0, batch.num_rows, 3):  # several orders
            part = batch.slice(start, 3)
            yield part.append_column("guess", pa.array([0.5] * part.num_rows))


def predict(url: str, select: str, table: str, orders: int) -> None:
    database: Any = open_database(url)
    left = orders

    def counted(order: Callable[..., Any]) -> Callable[..., Any]:
        def give(*arguments: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return order(*arguments)

        return give

    database.execute, database.append = counted(database.execute), counted(database.append)
    with database.target(select, [table], "guess", overwrite=True) as target:
        target.write(predictions(target))


def main(url: str, select: str, *tables: str) -> None:
    dialect = read_address(url).dialect
    importlib.import_module(DRIVERS[dialect])  # once, before the processes part
    read_selection(select, dialect)
    for table in tables:
        sys.stdin.readline()
        orders = 0
        while killed(url, select, table, orders):
            print("killed", flush=True)
            sys.stdin.readline()
            orders += 1 if table == tables[-1] else 3
        print("done", flush=True)


def killed(url: str, select: str, table: str, orders: int) -> bool:
    child = os.fork()
    if not child:
        predict(url, select, table, orders)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL), status
    return bool(status)


if __name__ == "__main__":
    main(*sys.argv[1:])
