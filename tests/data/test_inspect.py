"""A look into data of every format."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from elasticdl.data.inspect import inspect

from .conftest import recordio


def test_examples_are_decoded(tmp_path: Path) -> None:
    import tensorflow as tf

    feature = {
        "image": tf.train.Feature(float_list=tf.train.FloatList(value=range(784))),
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[7])),
        "name": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"seven"])),
        "none": tf.train.Feature(),
    }
    example = tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()
    path = tmp_path / "a.recordio"
    path.write_bytes(recordio([example] * 5))
    found = inspect(str(path), num_records=2)
    assert (found.format, found.num_records, len(found.shards)) == ("RecordIO", 5, 1)
    assert found.num_bytes == path.stat().st_size
    assert len(found.records) == 2
    record = found.records[0]
    assert isinstance(record, dict)
    assert record["image"] == [*map(float, range(8)), "... (784 values)"]
    assert (record["label"], record["name"], record["none"]) == (7, "seven", None)


def test_other_bytes_are_shown_shortened(tmp_path: Path) -> None:
    path = tmp_path / "a.recordio"
    path.write_bytes(recordio([b"plain text", b"\xff\x00", b"x" * 500, b""]))
    records = inspect(str(path), num_records=9).records
    assert records[:2] == ("plain text", r"b'\xff\x00'")
    assert str(records[2]).endswith("... (500 bytes)")
    assert records[3] == ""


def test_csv_is_shown_by_column(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,x\n2,ü\n")
    found = inspect(str(tmp_path), {"columns": ["b", "a"]})
    assert found.format == "CSV"
    assert found.records == ({"b": "x", "a": "1"}, {"b": "ü", "a": "2"})


def test_parquet_is_shown_by_column_over_all_shards(tmp_path: Path) -> None:
    table = pa.table({"a": range(4), "v": pa.array([[1.0, 2.0]] * 4, pa.list_(pa.float32(), 2))})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=1)
    found = inspect(str(tmp_path))
    assert (found.format, found.num_records, len(found.shards)) == ("Parquet", 4, 4)
    assert found.records == tuple({"a": i, "v": [1.0, 2.0]} for i in range(3))


def test_text_with_line_ends_is_shown_as_text(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('a,b\n"1\n2\t3",x\n')
    assert inspect(str(tmp_path)).records == ({"a": r"1\n2\t3", "b": "x"},)


def test_parquet_columns_that_are_no_values_are_shown_as_they_are(tmp_path: Path) -> None:
    columns = {
        "list": pa.array([[1, 2], [3], [], None]),
        "pairs": pa.array([[1, 2]] * 4),
        "struct": pa.array([{"s": "x"}] * 4),
        "holes": pa.array([1, None, 3, 4]),
        "text": ["a", "b", "c", "d"],
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    records = inspect(str(tmp_path), num_records=4).records
    assert [r["list"] for r in records if isinstance(r, dict)] == [[1, 2], [3], [], None]
    assert records[1] == {
        "list": [3],
        "pairs": [1, 2],
        "struct": {"s": "x"},
        "holes": None,
        "text": "b",
    }
