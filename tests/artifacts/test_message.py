"""The message of a trained model: other programs read what we write."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from elasticdl.artifacts import message
from elasticdl.artifacts.message import TrainedModel, decode, encode
from elasticdl.errors import CorruptData
from seeds import MISSING, SEEDS

PROTO = Path(message.__file__).with_name("trained_model.proto")
FULL = TrainedModel(
    docker_commit_id="docker-pullable://x@sha256:1",
    model_def="a.b",
    model_def_params="units=[1, 2]",
    params_filename="params.safetensors",
    input_function="feed",
    loss="mse",
    optimizer="sgd",
    format_version=1,
    elasticdl_version="0.1",
    versions={"python": "3.11", "keras": "3"},
    files={"zoo/ä.py": "00ff"},
    job='{"model": "b"}',
    metrics={"loss": 0.5, "val_loss": float("inf")},
    steps=1 << 40,
    signature="{}",
    created="2026-01-01T00:00:00Z",
    chosen="last",
    columns=("a", "b"),
    needed_columns=("a",),
    row_columns=("a",),
)


def compiled(text: str, directory: Path) -> Any:
    """The message class that protobuf's own compiler makes of a `.proto`."""
    (directory / "read.proto").write_text(text)
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{directory}"]
    subprocess.run([*command, f"-o{directory}/read.pb", "read.proto"], check=True)
    files = descriptor_pb2.FileDescriptorSet.FromString((directory / "read.pb").read_bytes())
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(files.file[0].SerializeToString())
    name = f"{files.file[0].package}.TrainedModel".lstrip(".")
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def test_message_is_the_same_after_it_was_written_and_read() -> None:
    assert decode(encode(FULL), "x") == FULL
    assert decode(encode(TrainedModel()), "x") == TrainedModel()
    assert encode(FULL) == encode(decode(encode(FULL), "x"))


def test_program_with_the_compiled_proto_reads_every_field(tmp_path: Path) -> None:
    read = compiled(PROTO.read_text(), tmp_path).FromString(encode(FULL))
    known = [field.name for field in read.DESCRIPTOR.fields]
    assert known == [field.name for field in dataclasses.fields(TrainedModel)]
    for name in known:
        ours, theirs = getattr(FULL, name), getattr(read, name)
        assert type(ours)(theirs) == ours
    assert decode(read.SerializeToString(), "x") == FULL


@pytest.mark.skipif(not SEEDS.is_dir(), reason=MISSING)
def test_program_with_the_first_design_reads_its_fields(tmp_path: Path) -> None:
    (document,) = SEEDS.glob("002*")
    (found,) = re.findall(r"```protobuf\n(message TrainedModel.*?)```", document.read_text(), re.S)
    read = compiled(f'syntax = "proto3";\n{found}', tmp_path).FromString(encode(FULL))
    names = [field.name for field in read.DESCRIPTOR.fields]
    assert len(names) == 7
    assert [getattr(read, name) for name in names] == [getattr(FULL, name) for name in names]


def test_page_shows_the_proto_as_it_is() -> None:
    page = (PROTO.parents[3] / "docs" / "reference" / "trained_model.md").read_text()
    assert PROTO.read_text() in page


@pytest.mark.parametrize("data", [b"\xff\xff", encode(FULL)[:-1], b"PK\x03\x04 a zip file"])
def test_bytes_that_are_no_message_are_refused(data: bytes) -> None:
    with pytest.raises(CorruptData, match="here is not the message of a trained model"):
        decode(data, "here")
