"""Memory does not grow with the file: peaks of processes that read a small and a large one."""

from __future__ import annotations

import gzip
import io
import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from .conftest import recordio, tfrecords

_PROGRAM = """
import sys
from elasticdl.data.registry import open_source
source = open_source(sys.argv[1])
num = 0
for shard in source.shards:
    for start in range(0, shard.num_records, 4096):
        for chunk in source.read(shard.name, start, min(start + 4096, shard.num_records)):
            num += 1
# Not ru_maxrss: a child process starts with the peak of its parent.
[peak] = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(int(peak) >> 10, num)
"""


def write(kind: str, path: Path, num_mib: int) -> None:
    rng = random.Random(0)
    block = [rng.randbytes(1024).hex().encode() for _ in range(512)]  # 1 MiB of text
    if kind == "parquet":
        schema = pa.schema([("a", pa.binary())])
        with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
            table = pa.table({"a": block * num_mib}, schema)
            writer.write_table(table, row_group_size=1 << 20)
        return
    data = {
        "recordio": lambda: recordio(block, max_chunk_bytes=1 << 20),
        "tfrecord": lambda: tfrecords(block),
        "csv": lambda: b"".join(b'"' + row + b'\n"\n' for row in block),
    }[kind.removesuffix(".gz")]()
    buffer = io.BytesIO()
    buffer.write(b"a\n" if kind.startswith("csv") else b"")
    for _ in range(num_mib):
        buffer.write(data)
    content = buffer.getvalue()
    path.write_bytes(gzip.compress(content, 1) if kind.endswith(".gz") else content)


def peak_mib(path: Path) -> int:
    command = [sys.executable, "-c", _PROGRAM, str(path)]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return int(out.split()[0])


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's /proc")
@pytest.mark.parametrize("kind", ["recordio", "tfrecord", "tfrecord.gz", "csv", "parquet"])
def test_peak_memory_does_not_grow_with_the_file(kind: str, tmp_path: Path) -> None:
    small, large = tmp_path / f"small.{kind}", tmp_path / f"large.{kind}"
    write(kind, small, 2)
    write(kind, large, 160)
    # RecordIO keeps 64 MiB of decompressed chunks, and Arrow's allocator some tens of MiB, whatever
    # the size of the file.
    allowed = {"recordio": 64 + 16, "parquet": 64}.get(kind, 24)
    grown = peak_mib(large) - peak_mib(small)
    assert grown < allowed
