"""The messages of SQLFlow's service: a table of their fields, and the classes that are made from it.

The table is the protocol that SQLFlow's clients speak. Classes are made when they are first needed, in a pool of
their own, so that a process which has SQLFlow's compiled file loaded too is not disturbed.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

__all__ = ["PACKAGE", "SERVICE", "messages"]

PACKAGE = "proto"
SERVICE = "proto.SQLFlow"

# name: (number, kind); a kind is a scalar type, the name of a message, or `repeated` and one of them.
_Fields = Mapping[str, tuple[int, str]]

MESSAGES: Mapping[str, _Fields] = {
    "Session": {
        "token": (1, "string"),
        "db_conn_str": (2, "string"),
        "exit_on_submit": (3, "bool"),
        "user_id": (4, "string"),
        "hive_location": (5, "string"),
        "hdfs_namenode_addr": (6, "string"),
        "hdfs_user": (7, "string"),
        "hdfs_pass": (8, "string"),
        "submitter": (9, "string"),
        "service_account": (10, "string"),
        "wf_namespace": (11, "string"),
    },
    "Request": {"sql": (1, "string"), "session": (2, "Session")},
    "Head": {"column_names": (1, "repeated string")},
    "Row": {"data": (1, "repeated google.protobuf.Any")},
    "Row.Null": {},
    "Message": {"message": (1, "string")},
    "EndOfExecution": {"sql": (1, "string"), "spent_time_seconds": (2, "int64")},
    "Job": {"id": (1, "string"), "namespace": (2, "string")},
    "Response": {
        "head": (1, "Head"),
        "row": (2, "Row"),
        "message": (3, "Message"),
        "eoe": (4, "EndOfExecution"),
        "job": (5, "Job"),
    },
    "FetchRequest": {"job": (1, "Job"), "step_id": (2, "string"), "step_phase": (3, "string")},
    "FetchResponse": {
        "updated_fetch_since": (1, "FetchRequest"),
        "eof": (2, "bool"),
        "responses": (4, "FetchResponse.Responses"),
    },
    "FetchResponse.Responses": {"response": (1, "repeated Response")},
}
ONE_OF = {"Response": "response"}
"""Messages of which one field is set, and what the choice is called."""
_SCALARS = ("string", "bool", "int64")


@functools.cache
def messages() -> Any:
    """The classes, by name: `messages().Request`. One that is inside another is not listed."""
    from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(
        name="elasticdl/sqlflow.proto",
        package=PACKAGE,
        syntax="proto3",
        dependency=["google/protobuf/any.proto"],
    )
    made: dict[str, Any] = {}
    for name, fields in MESSAGES.items():
        outer, _, inner = name.rpartition(".")
        kinds = made[outer].nested_type if outer else file.message_type
        made[name] = kinds.add(name=inner)
        _describe(made[name], fields, ONE_OF.get(name))
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(any_pb2.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(file.SerializeToString())
    classes = {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))
        for name in MESSAGES
        if "." not in name
    }
    any_ = message_factory.GetMessageClass(pool.FindMessageTypeByName("google.protobuf.Any"))
    return SimpleNamespace(Any=any_, **classes)


def _describe(message: Any, fields: _Fields, one_of: str | None) -> None:
    if one_of:
        message.oneof_decl.add(name=one_of)
    for name, (number, kind) in fields.items():
        label, _, type_ = kind.rpartition(" ")
        field = message.field.add(name=name, number=number)
        field.label = field.LABEL_REPEATED if label else field.LABEL_OPTIONAL
        if type_ in _SCALARS:
            field.type = getattr(field, f"TYPE_{type_.upper()}")
        else:
            field.type = field.TYPE_MESSAGE
            field.type_name = f".{type_}" if type_.startswith("google.") else f".{PACKAGE}.{type_}"
        if one_of:
            field.oneof_index = 0
