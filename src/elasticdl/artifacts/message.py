"""The `TrainedModel` message: its fields as a table, its bytes as protobuf has them.

The class is made from the table when it is first needed. Code that a protobuf compiler wrote would be tied
to one version of its library. `trained_model.proto` beside this file is the same table for other readers.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from elasticdl.errors import CorruptData

__all__ = ["FORMAT_VERSION", "IMAGE_VARIABLE", "TrainedModel", "decode", "encode"]

FORMAT_VERSION = 1
IMAGE_VARIABLE = "ELASTICDL_IMAGE"
"""Who trains in an image is told its pullable name by this variable of the environment."""
_PACKAGE = "elasticdl"
_NAME = "TrainedModel"


def _field(number: int, kind: str) -> Any:
    """`kind`: a scalar type of protobuf, `repeated TYPE`, or `map TYPE` by strings."""
    default: dict[str, Any] = {"string": "", "int32": 0, "int64": 0}
    metadata = {"number": number, "kind": kind}
    if kind in default:
        return field(default=default[kind], metadata=metadata)
    made = tuple if kind.startswith("repeated") else dict
    return field(default_factory=made, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class TrainedModel:
    """What a trained model is, where it comes from and which files belong to it."""

    docker_commit_id: str = _field(1, "string")
    model_def: str = _field(2, "string")
    model_def_params: str = _field(3, "string")
    params_filename: str = _field(4, "string")
    input_function: str = _field(5, "string")
    loss: str = _field(6, "string")
    optimizer: str = _field(7, "string")
    format_version: int = _field(8, "int32")
    elasticdl_version: str = _field(9, "string")
    versions: Mapping[str, str] = _field(10, "map string")
    files: Mapping[str, str] = _field(11, "map string")
    job: str = _field(12, "string")
    metrics: Mapping[str, float] = _field(13, "map double")
    steps: int = _field(14, "int64")
    signature: str = _field(15, "string")
    created: str = _field(16, "string")
    chosen: str = _field(17, "string")
    columns: Sequence[str] = _field(18, "repeated string")
    needed_columns: Sequence[str] = _field(19, "repeated string")
    row_columns: Sequence[str] = _field(20, "repeated string")


def encode(model: TrainedModel) -> bytes:
    """The same model gives the same bytes."""
    message = _message_class()()
    for one in dataclasses.fields(model):
        value = getattr(model, one.name)
        kind = one.metadata["kind"]
        if kind.startswith("map"):
            getattr(message, one.name).update(value)
        elif kind.startswith("repeated"):
            getattr(message, one.name).extend(value)
        else:
            setattr(message, one.name, value)
    return bytes(message.SerializeToString(deterministic=True))


def decode(data: bytes, where: str) -> TrainedModel:
    """The message in some bytes; what is newer than this reader is refused by the caller."""
    from google.protobuf.message import DecodeError

    message = _message_class()()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise CorruptData(
            f"{where} is not the message of a trained model: it is damaged or of another kind. "
            "Copy the trained model again, or train it anew."
        ) from error
    # Protobuf hands out the entries of a map in another order in each process.
    made: dict[str, Callable[[Any], Any]] = {
        "map": lambda entries: dict(sorted(entries.items())),
        "repeated": tuple,
    }
    values: dict[str, Any] = {}
    for one in dataclasses.fields(TrainedModel):
        convert = made.get(one.metadata["kind"].split(" ")[0], lambda value: value)
        values[one.name] = convert(getattr(message, one.name))
    return TrainedModel(**values)


@functools.cache
def _message_class() -> Any:
    """Made in a pool of its own: a program that has the `.proto` compiled too is not disturbed."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(
        name="elasticdl/trained_model.proto", package=_PACKAGE, syntax="proto3"
    )
    message = file.message_type.add(name=_NAME)
    for one in dataclasses.fields(TrainedModel):
        _describe(message, one.name, **one.metadata)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{_NAME}"))


def _describe(message: Any, name: str, *, number: int, kind: str) -> None:
    label, _, type_ = kind.rpartition(" ")
    added = message.field.add(name=name, number=number)
    added.label = added.LABEL_REPEATED if label else added.LABEL_OPTIONAL
    if label != "map":
        added.type = getattr(added, f"TYPE_{type_.upper()}")
        return
    # A map is a repeated message of pairs; protobuf derives its name from the field's.
    entry = message.nested_type.add(name=f"{name.capitalize()}Entry")
    entry.options.map_entry = True
    _describe(entry, "key", number=1, kind="string")
    _describe(entry, "value", number=2, kind=type_)
    added.type = added.TYPE_MESSAGE
    added.type_name = f".{_PACKAGE}.{_NAME}.{entry.name}"
