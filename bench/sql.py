"""SQL: rows from a table of 1,000,000 rows and 20 columns to training, its memory, and PREDICT.

- rows: from the SELECT to the last minibatch of an epoch, with the spool and the statistics that a training makes,
  against a cursor of Python rows in a `tf.data` pipeline of the same minibatches; for scale, against such rows that are
  only stacked to arrays and reach no training.
- memory: the peak of a process that trains on all rows, beside one that trains on 10,000.
- PREDICT: the statement, as rows that are taken, against `model.predict` of the same model on the same arrays.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import report

ROWS, FEW, COLUMNS, BATCH = 1_000_000, 10_000, 20, 256
NAMES = [f"c{i}" for i in range(COLUMNS)]
TRAIN = (
    "SELECT * FROM {table} TRAIN DNNRegressor WITH hidden_units=[32], train.epoch=1, "
    "train.batch_size=256 LABEL c0 INTO m;"
)


def write_table(path: Path) -> None:
    import duckdb

    with duckdb.connect(str(path)) as connection:
        columns = ", ".join(f"random() * {i + 1} AS {name}" for i, name in enumerate(NAMES))
        connection.execute("SELECT setseed(0.5)")
        connection.execute(f"CREATE TABLE points AS SELECT {columns} FROM range({ROWS})")
        connection.execute(f"CREATE TABLE few AS SELECT * FROM points LIMIT {FEW}")


def stacked_rows(path: Path) -> float:
    """Rows a second of a cursor, as arrays of a minibatch each."""
    import duckdb

    started = time.perf_counter()
    with duckdb.connect(str(path), read_only=True) as connection:
        cursor = connection.execute("SELECT * FROM points")
        while rows := cursor.fetchmany(BATCH):
            table = np.array(rows, np.float32)
            table[:, 1:], table[:, :1]
    return ROWS / (time.perf_counter() - started)


def cursor_rows(path: Path) -> float:
    """Rows a second of a cursor, as minibatches in a graph."""
    import duckdb
    import tensorflow as tf

    with duckdb.connect(str(path), read_only=True) as connection:

        def rows() -> Iterator[np.ndarray]:
            cursor = connection.execute("SELECT * FROM points LIMIT 100000")
            while some := cursor.fetchmany(BATCH):
                for row in some:
                    yield np.array(row, np.float32)

        signature = tf.TensorSpec([COLUMNS], tf.float32)
        dataset = tf.data.Dataset.from_generator(rows, output_signature=signature)
        dataset = dataset.shuffle(BATCH * 16).batch(BATCH).prefetch(2)
        started = time.perf_counter()
        seen = int(drain(iter(dataset.map(lambda table: tf.shape(table)[0]))))
    assert seen == 100_000
    return seen / (time.perf_counter() - started)


def drain(iterator: Any) -> Any:
    """The sum of what an iterator gives, in a graph, as a training takes minibatches."""
    import tensorflow as tf

    @tf.function
    def run(iterator: Any) -> Any:
        total = tf.constant(0)
        following = iterator.get_next_as_optional()
        while following.has_value():
            total += following.get_value()
            following = iterator.get_next_as_optional()
        return total

    return run(iterator)


def delivered_rows(path: Path) -> float:
    """Rows a second of ours, with all that a training does before and between its steps."""
    import tensorflow as tf

    from elasticdl.contract.mode import Mode
    from elasticdl.data.ledger import Ledger
    from elasticdl.data.pipeline import Pipeline
    from elasticdl.data.registry import open_source
    from elasticdl.sql.databases import open_database
    from elasticdl.sql.spool import write_rows
    from elasticdl.tabular.derive import Profile, derive
    from elasticdl.tabular.inputs import TableBatches

    @tf.function
    def take(iterator: Any) -> Any:
        total, following = tf.constant(0), iterator.get_next()
        while following.has_value():
            total += tf.shape(following.get_value()[1])[0]
            following = iterator.get_next()
        return total

    with tempfile.TemporaryDirectory() as directory:
        spool = Path(directory, "rows.arrow")
        started = time.perf_counter()
        database = open_database(f"duckdb:///{path}")
        rows = database.select("SELECT * FROM points")
        profile = Profile(rows.schema)
        write_rows(rows, spool, profile.add, block=512)
        database.close()
        plan = derive(profile, label="c0", task="regression")
        table = [vars(column) for column in (*plan.columns, *plan.label_columns)]
        source = open_source(str(spool), {"table": table, "order_seed": 1})
        pipeline = Pipeline(source, TableBatches(plan), Mode.TRAINING, BATCH, 1)
        ledger = Ledger(source.shards, records_per_lease=BATCH * 256, num_epochs=1, seed=1)
        seen = 0
        while lease := ledger.lease():
            iterator = pipeline.open(lease)
            pipeline.prepare(ledger.peek())
            seen += int(take(iterator))
            pipeline.finish(lease)
            ledger.complete(lease)
        seconds = time.perf_counter() - started
        pipeline.close()
    assert seen == ROWS
    return ROWS / seconds


def measure_rows(path: str) -> dict[str, float]:
    database = Path(path)
    delivered_rows(database)  # TensorFlow's first dataset takes a second
    ways = {"ours": delivered_rows, "cursor": cursor_rows, "stacked": stacked_rows}
    best = dict.fromkeys(ways, 0.0)
    for _ in range(3):
        for name, measure in ways.items():
            best[name] = max(best[name], measure(database))
    return best


def train(path: str, table: str, models: str) -> None:
    from elasticdl.sql.session import Session

    with Session(f"duckdb:///{path}", models=models, log_level="ERROR", seed=1) as session:
        list(session.run(TRAIN.format(table=table)))


def measure_memory(path: str, table: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as models:
        train(path, table, models)
    return {"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000}


def measure_predict(path: str) -> dict[str, float]:
    """Seconds for all rows, ours and `model.predict` by turns; the faster of two."""
    import duckdb
    import keras

    from elasticdl.sql.session import Session

    with tempfile.TemporaryDirectory() as models:
        train(path, "few", models)
        model = keras.models.load_model(next(Path(models).rglob("model.keras")), **_classes())
        with duckdb.connect(path, read_only=True) as connection:
            columns = connection.execute(f"SELECT {', '.join(NAMES[1:])} FROM points").fetchnumpy()
        arrays = {name: np.asarray(column, np.float32) for name, column in columns.items()}
        best = {"ours": 1e9, "peer": 1e9}
        for _ in range(2):
            started = time.perf_counter()
            with Session(f"duckdb:///{path}", models=models, log_level="ERROR") as session:
                (outcome,) = session.run("SELECT * FROM points PREDICT USING m;")
                count = sum(batch.num_rows for batch in outcome.rows)
                outcome.rows.close()
            best["ours"] = min(best["ours"], time.perf_counter() - started)
            assert count == ROWS
            started = time.perf_counter()
            model.predict(arrays, batch_size=4096, verbose=0)
            best["peer"] = min(best["peer"], time.perf_counter() - started)
    return best


def _classes() -> dict[str, Any]:
    """The built-in models' classes, which the Keras file names."""
    from elasticdl.contract.zoo import Zoo
    from elasticdl.tabular.models import BUILT_IN

    return {"custom_objects": {"DNN": Zoo(BUILT_IN).find("regressor.DNN").value}}


def apart(what: str, *args: str) -> dict[str, float]:
    """A measurement in a process of its own."""
    command = [sys.executable, __file__, what, *args]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


def report_all(path: str) -> None:
    rows = apart("rows", path)
    report.add("SQL rows to training: a cursor", rows["ours"], rows["cursor"], "rows/s", 5)
    name = "SQL rows to training: a cursor's rows in arrays alone"
    report.add(name, rows["ours"], rows["stacked"], "rows/s")
    whole, few = apart("memory", path, "points")["peak"], apart("memory", path, "few")["peak"]
    name = "SQL training, peak memory of 1,000,000 rows: of 10,000, and 400 MB"
    report.add(name, whole, few + 400, "MB", 1, more_is_better=False)
    seconds = apart("predict", path)
    name = "SELECT ... PREDICT of 1,000,000 rows: model.predict"
    report.add(name, seconds["ours"], seconds["peer"], "s", 2, more_is_better=False)
    report.finish()


def main() -> None:
    if len(sys.argv) > 1:
        from elasticdl.quiet import load_tensorflow

        load_tensorflow()
        measure = globals()[f"measure_{sys.argv[1]}"]
        print(json.dumps(measure(*sys.argv[2:])))
        return
    with tempfile.TemporaryDirectory(prefix="elasticdl-bench-") as directory:
        path = Path(directory, "points.duckdb")
        write_table(path)
        report_all(str(path))


if __name__ == "__main__":
    main()
