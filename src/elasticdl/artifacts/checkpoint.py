"""Checkpoints: tensors in safetensors, the rest in a JSON manifest with checksums, committed by a rename.

checkpoints/step-00000120/
  tensors.safetensors
  manifest.json     {"version", "step", "tensors": {"file", "sha256"}, "state"}
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elasticdl.artifacts.run_directory import storage_errors
from elasticdl.errors import CorruptData, NotFound

__all__ = ["Checkpoint", "Checkpoints"]

VERSION = 1
TENSORS = "tensors.safetensors"
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was read and found whole."""

    step: int
    path: Path
    tensors: dict[str, Any]
    state: dict[str, Any]


class Checkpoints:
    """The checkpoints of one directory."""

    def __init__(self, directory: Path, keep: int = 0) -> None:
        self._directory = directory
        self._keep = keep

    def save(self, step: int, tensors: Mapping[str, Any], state: Mapping[str, Any]) -> Path:
        """Write aside, sync and rename; then drop the oldest beyond the number to keep."""
        final = self._directory / f"step-{step:08d}"
        aside = self._directory / f".step-{step:08d}.tmp"
        with storage_errors(self._directory):
            try:
                self._write(aside, step, tensors, state)
                shutil.rmtree(final, ignore_errors=True)
                aside.rename(final)
                _sync(self._directory)
            except OSError:
                shutil.rmtree(aside, ignore_errors=True)
                raise
        self._drop_oldest()
        return final

    def _write(
        self, aside: Path, step: int, tensors: Mapping[str, Any], state: Mapping[str, Any]
    ) -> None:
        from safetensors.numpy import save

        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        content = save(dict(tensors))
        manifest = {
            "version": VERSION,
            "step": step,
            "tensors": {"file": TENSORS, "sha256": hashlib.sha256(content).hexdigest()},
            "state": state,
        }
        for name, data in ((TENSORS, content), (MANIFEST, json.dumps(manifest).encode())):
            with (aside / name).open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())

    def _drop_oldest(self) -> None:
        if self._keep:
            for path in self._paths()[: -self._keep]:
                shutil.rmtree(path, ignore_errors=True)

    def _paths(self) -> list[Path]:
        if not self._directory.is_dir():
            return []
        return sorted(p for p in self._directory.iterdir() if p.name.startswith("step-"))

    def latest(self) -> tuple[Checkpoint | None, list[str]]:
        """The newest checkpoint that is whole, and what was wrong with newer ones."""
        faults: list[str] = []
        for path in reversed(self._paths()):
            try:
                return self.read(path), faults
            except CorruptData as error:
                faults.append(str(error))
        return None, faults

    def require_latest(self) -> Checkpoint:
        """The newest whole checkpoint; raises `NotFound` when there is none."""
        checkpoint, faults = self.latest()
        if checkpoint is None:
            raise NotFound(
                f"There is no checkpoint in {self._directory}. {' '.join(faults)}".strip()
            )
        return checkpoint

    @staticmethod
    def read(path: Path) -> Checkpoint:
        """Read one checkpoint and verify its checksum."""
        from safetensors.numpy import load

        try:
            manifest = json.loads((path / MANIFEST).read_bytes())
            content = (path / TENSORS).read_bytes()
            whole = hashlib.sha256(content).hexdigest() == manifest["tensors"]["sha256"]
            if not whole or manifest["version"] != VERSION:
                fault = (
                    "is damaged: its checksum does not fit"
                    if not whole
                    else "is of another version"
                )
                raise CorruptData(f"The checkpoint {path} {fault}.")
            return Checkpoint(manifest["step"], path, load(content), manifest["state"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            if isinstance(error, CorruptData):
                raise
            raise CorruptData(f"The checkpoint {path} is damaged: {error}.") from error


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
