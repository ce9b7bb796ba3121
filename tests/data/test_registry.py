"""Which reader reads what, and what is said when the wrong one would."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from elasticdl.data.registry import open_source
from elasticdl.errors import DataError, InvalidValue, UnknownName

from .conftest import Sample, random_records, read_all, recordio, tfrecords

Samples = Callable[[str, int], Sample]
TYPES = {"recordio": "RecordIO", "tfrecord": "TFRecord", "csv": "CSV", "parquet": "Parquet"}


@pytest.mark.parametrize("kind", TYPES)
def test_reader_type_wins_over_the_name_in_any_case(kind: str, samples: Samples) -> None:
    path, records = samples(kind, 10)
    odd = path.rename(path.with_suffix(".data"))
    for name in (TYPES[kind], TYPES[kind].lower(), TYPES[kind].upper()):
        assert read_all(open_source(str(odd), {"reader_type": name})) == records


def test_name_without_a_known_end_is_recordio(tmp_path: Path) -> None:
    records = random_records(5)
    (tmp_path / "part-00000").write_bytes(recordio(records))
    assert read_all(open_source(tmp_path / "part-00000")) == records


def test_name_in_capitals_is_known(tmp_path: Path) -> None:
    (tmp_path / "A.CSV").write_bytes(b"a\n1\n")
    assert read_all(open_source(tmp_path / "A.CSV")) == [[b"1"]]


@pytest.mark.parametrize("real", TYPES)
@pytest.mark.parametrize("taken_for", TYPES)
def test_content_of_another_format_is_told(real: str, taken_for: str, samples: Samples) -> None:
    path, records = samples(real, 10)
    wrong = path.rename(path.with_suffix(f".{taken_for}"))
    if real == taken_for:
        assert read_all(open_source(str(wrong))) == records
        return
    with pytest.raises(DataError, match=rf"as {TYPES[taken_for]}, but it looks like {TYPES[real]}"):
        open_source(str(wrong))


def test_compression_that_the_name_does_not_say_is_told(tmp_path: Path) -> None:
    data = gzip.compress(tfrecords([b"x"]))
    for name, words in (("a.tfrecord", "Name it .gz"), ("a.recordio", "Unpack it first")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(DataError, match=words):
            open_source(str(tmp_path / name))
    (tmp_path / "b.csv.gz").write_bytes(b"a\n1\n")
    with pytest.raises(DataError, match="not gzip-compressed"):
        open_source(str(tmp_path / "b.csv.gz"))


def test_mixed_formats_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"a\n1\n")
    (tmp_path / "b.recordio").write_bytes(recordio([b"x"]))
    with pytest.raises(DataError, match=r"CSV \(.*a\.csv\), RecordIO \(.*b\.recordio\)"):
        open_source(str(tmp_path))
    assert len(open_source(f"{tmp_path}/*.csv").shards) == 1


def test_unknown_names_are_refused_with_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"a\n1\n")
    with pytest.raises(UnknownName, match=r"CSV reader has no parameter 'colums'.*'columns'"):
        open_source(str(tmp_path), {"colums": ["a"]})
    with pytest.raises(UnknownName, match=r"reader_type 'TFRecrod'. Did you mean 'tfrecord'"):
        open_source(str(tmp_path), {"reader_type": "TFRecrod"})
    (tmp_path / "a.csv").rename(tmp_path / "a.rec")
    with pytest.raises(UnknownName, match="RecordIO reader has no parameter 'columns'"):
        open_source(str(tmp_path), {"columns": ["a"]})


def test_several_files_are_several_shards_and_empty_ones_are_left_out(tmp_path: Path) -> None:
    records = random_records(20)
    (tmp_path / "a.recordio").touch()
    (tmp_path / "b.recordio").write_bytes(recordio(records[:5]))
    (tmp_path / "c.recordio").write_bytes(recordio([]))
    (tmp_path / "d.recordio").write_bytes(recordio(records[5:]))
    source = open_source(str(tmp_path))
    assert [Path(shard.name).name for shard in source.shards] == ["b.recordio", "d.recordio"]
    assert read_all(source) == records


@pytest.mark.parametrize("kind", TYPES)
def test_empty_file_among_others_is_left_out(kind: str, samples: Samples) -> None:
    path, records = samples(kind, 3)
    path.with_name(f"empty.{kind}").touch()
    assert read_all(open_source(str(path.parent))) == records


@pytest.mark.parametrize("kind", TYPES)
def test_no_records_at_all_are_refused(kind: str, tmp_path: Path) -> None:
    (tmp_path / f"a.{kind}").touch()
    (tmp_path / f"b.{kind}").touch()
    with pytest.raises(DataError, match=r"no records|is empty"):
        open_source(str(tmp_path))


def test_source_is_returned_as_it_is(samples: Samples) -> None:
    source = open_source(str(samples("csv", 3)[0]))
    assert open_source(source) is source


def test_no_data_is_refused() -> None:
    with pytest.raises(InvalidValue, match="No data was given"):
        open_source(None)


def test_readers_import_no_framework() -> None:
    import subprocess
    import sys

    code = (
        "import sys; import elasticdl.data.registry as r, elasticdl.data.prepare\n"
        "[f.load() for f in r.FORMATS.values()]\n"
        "print([m for m in ('tensorflow', 'keras', 'pandas') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
