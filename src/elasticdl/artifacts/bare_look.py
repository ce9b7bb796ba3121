"""A look at a Keras file or a SavedModel that loads neither Keras nor TensorFlow and runs nothing."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from typing import IO, Any, cast

from upath import UPath

from elasticdl.errors import CorruptData
from elasticdl.storage import place, storage_errors

__all__ = ["look_at"]

_GRAPH = "saved_model.pb"


def look_at(path: str) -> dict[str, Any]:
    """What can be known of a bare model, as plain values."""
    where = place(path)
    with storage_errors(where, doing="read"):
        return _saved_model(where) if where.is_dir() else _keras_file(where)


def _keras_file(where: UPath) -> dict[str, Any]:
    with where.open("rb") as opened:
        try:
            with zipfile.ZipFile(cast("IO[bytes]", opened)) as archive:
                config = json.loads(archive.read("config.json"))
                metadata = json.loads(archive.read("metadata.json"))
            if not isinstance(config, dict) or not isinstance(metadata, dict):
                raise ValueError("no mapping")
        except (zipfile.BadZipFile, KeyError, ValueError, RecursionError) as error:
            raise CorruptData(
                f"{where} is not a whole Keras file: it is no zip archive with a model's config.json and "
                "metadata.json. Copy it again."
            ) from error
    parts = [one for one in _dicts(config) if isinstance(one.get("class_name"), str)]
    compiled = config.get("compile_config") or {}
    return {
        "path": str(where),
        "format": "Keras file",
        "model": config.get("registered_name") or config.get("class_name", ""),
        "name": _config(config).get("name", ""),
        "inputs": _inputs(config),
        "loss": _called(compiled.get("loss")),
        "optimizer": _called(compiled.get("optimizer")),
        "keras_version": str(metadata.get("keras_version", "")),
        "created": str(metadata.get("date_saved", "")),
        "size": where.stat().st_size,
        "holds_code": any(one["class_name"] in ("Lambda", "__lambda__") for one in parts),
    }


def _dicts(value: Any) -> Iterator[Mapping[str, Any]]:
    """All mappings in some JSON."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Mapping):
            yield one
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one


def _config(part: Mapping[str, Any]) -> Mapping[str, Any]:
    config = part.get("config")
    return config if isinstance(config, Mapping) else {}


def _inputs(model: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the model itself, not of the models that it is made of."""
    layers = [one for one in _config(model).get("layers") or () if isinstance(one, Mapping)]
    return dict(_input(layer) for layer in layers if layer.get("class_name") == "InputLayer")


def _input(layer: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    config = _config(layer)
    dtype = config.get("dtype")
    if isinstance(dtype, Mapping):
        dtype = _config(dtype).get("name")
    return str(config.get("name")), {"dtype": str(dtype), "shape": config.get("batch_shape")}


def _called(part: Any) -> str:
    """A loss or an optimizer by its name, or its class; several with commas."""
    if isinstance(part, list):
        return ", ".join(map(_called, part))
    if not isinstance(part, Mapping):
        return str(part or "")
    if "class_name" in part:
        return str(_config(part).get("name") or part.get("config") or part["class_name"])
    return ", ".join(f"{name}: {_called(one)}" for name, one in part.items())


def _saved_model(where: UPath) -> dict[str, Any]:
    files = [file for file in where.rglob("*") if file.is_file()]
    sizes = {"/".join(file.parts[len(where.parts) :]): file.stat().st_size for file in files}
    return {
        "path": str(where),
        "format": "SavedModel",
        "fingerprint": _fingerprint(where / "fingerprint.pb"),
        "size": sum(sizes.values()),
        "files": dict(sorted(sizes.items())),
    }


def _fingerprint(file: UPath) -> str:
    """TensorFlow's checksum of the graph, the first field of its message."""
    from google.protobuf.empty_pb2 import Empty
    from google.protobuf.message import DecodeError
    from google.protobuf.unknown_fields import UnknownFieldSet

    if not file.is_file():
        return ""
    message = Empty()
    try:
        message.ParseFromString(file.read_bytes())
    except DecodeError:
        return ""
    return next(
        (f"{one.data:016x}" for one in UnknownFieldSet(message) if one.field_number == 1), ""
    )
