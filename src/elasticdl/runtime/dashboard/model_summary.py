"""The layers of a run's model, read from the heads of its files; neither Keras nor the model's code is loaded."""

from __future__ import annotations

import contextlib
import json
import math
import struct
import zipfile
from collections.abc import Mapping
from typing import Any

from upath import UPath

from elasticdl.runtime.dashboard.files import entries, is_inside, read_bytes
from elasticdl.runtime.dashboard.runs import Run
from elasticdl.storage import is_local

__all__ = ["model_summary"]

LARGEST_HEAD = 16 << 20
MOST_LAYERS = 500
_MODELS = ("model", "exported")
_SEED = "seed_generator_state"


def model_summary(run: Run) -> str | None:
    """A table in text of the trained model, or of the newest checkpoint; None when there is neither."""
    folder = next((name for name in _MODELS if name in run.found), None)
    if folder is not None:
        path = run.path / folder
        tensors = _tensors(path / "params.safetensors", run.root)
        kinds = _kinds(path / "model.keras", run.root) if is_local(path) else {}
        return _table(_layers(tensors), kinds)
    if "checkpoints" not in run.found:
        return None
    saved = sorted(n for n in entries(run.path / "checkpoints", run.root) if n.startswith("step-"))
    for name in reversed(saved):
        tensors = _tensors(run.path / "checkpoints" / name / "tensors.safetensors", run.root)
        if tensors:
            return _table(_layers(tensors), {})
    return None


def _tensors(file: UPath, root: UPath) -> dict[str, list[int]]:
    """The shapes of a model's parameters, by name."""
    size = read_bytes(file, root, 0, 8)
    if len(size) < 8:
        return {}
    length = min(struct.unpack("<Q", size)[0], LARGEST_HEAD)
    head = json.loads(read_bytes(file, root, 8, 8 + length))
    named = {name: about["shape"] for name, about in head.items() if name.startswith("model/")}
    return {name.removeprefix("model/"): shape for name, shape in named.items()}


def _layers(tensors: Mapping[str, list[int]]) -> dict[str, list[list[int]]]:
    layers: dict[str, list[list[int]]] = {}
    for name, shape in tensors.items():
        layer, _, parameter = name.rpartition("/")
        if parameter != _SEED:
            layers.setdefault(layer or name, []).append(shape)
    return layers


def _kinds(file: UPath, root: UPath) -> dict[str, str]:
    """The class of each layer, in the order of the model."""
    if not is_inside(file, root):
        return {}
    with (
        contextlib.suppress(OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile),
        zipfile.ZipFile(str(file)) as archive,
    ):
        if archive.getinfo("config.json").file_size <= LARGEST_HEAD:
            layers = json.loads(archive.read("config.json"))["config"].get("layers", [])
            return {str(one["config"]["name"]): str(one["class_name"]) for one in layers}
    return {}


def _table(layers: Mapping[str, list[list[int]]], kinds: Mapping[str, str]) -> str | None:
    if not layers:
        return None
    order = {name: n for n, name in enumerate(kinds)}
    paths = sorted(layers, key=lambda path: (order.get(_name(path), len(order)), path))
    header = ("layer", "type", "shapes", "parameters")
    rows = [header, *(_row(path, layers[path], kinds) for path in paths[:MOST_LAYERS])]
    if len(paths) > MOST_LAYERS:
        rows.append((f"... and {len(paths) - MOST_LAYERS} more", "", "", ""))
    total = sum(_count(shape) for shapes in layers.values() for shape in shapes)
    rows.append(("total", "", "", f"{total:,}"))
    used = [n for n in range(4) if any(row[n] for row in rows[1:])]
    widths = {n: max(len(row[n]) for row in rows) for n in used}
    return "\n".join("  ".join(_cell(row[n], n, widths[n]) for n in used).rstrip() for row in rows)


def _row(path: str, shapes: list[list[int]], kinds: Mapping[str, str]) -> tuple[str, str, str, str]:
    largest = sorted(shapes, key=_count, reverse=True)
    shown = ", ".join("x".join(map(str, shape)) or "1" for shape in largest[:2])
    more = ", ..." if len(shapes) > 2 else ""
    count = sum(map(_count, shapes))
    return path, kinds.get(_name(path), ""), shown + more, f"{count:,}"


def _cell(text: str, column: int, width: int) -> str:
    return text.rjust(width) if column == 3 else text.ljust(width)


def _count(shape: Any) -> int:
    return math.prod(shape)


def _name(path: str) -> str:
    return path.rpartition("/")[2]
