"""Checkpoints: tensors in safetensors, the rest in a JSON manifest with checksums, committed by a rename.

checkpoints/step-00000120/
  tensors.safetensors
  manifest.json     {"version", "step", "tensors": {"file", "sha256"}, "state", "sha256"}
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from upath import UPath

from elasticdl.artifacts.tensors import checksum, save_tensors
from elasticdl.errors import CorruptData, NotFound, OutputExists, reason
from elasticdl.storage import children, new_directory, remove, storage_errors

__all__ = ["Checkpoint", "Checkpoints", "find_checkpoint"]

VERSION = 1
TENSORS = "tensors.safetensors"
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was read and found whole."""

    step: int
    path: UPath
    tensors: dict[str, Any]
    state: dict[str, Any]


class Checkpoints:
    """The checkpoints of one directory."""

    def __init__(self, directory: UPath, keep: int = 0) -> None:
        self._directory = directory
        self._keep = keep

    def save(self, step: int, tensors: Mapping[str, Any], state: Mapping[str, Any]) -> UPath:
        """Write a checkpoint whole, or not at all; then drop the oldest beyond the number to keep."""
        final = self._directory / f"step-{step:08d}"
        with new_directory(final, last=MANIFEST) as aside, storage_errors(final):
            save_tensors(aside / TENSORS, tensors)
            manifest = {
                "version": VERSION,
                "step": step,
                "tensors": {"file": TENSORS, "sha256": checksum(aside / TENSORS)},
                "state": state,
            }
            manifest["sha256"] = _digest(manifest)
            (aside / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
        self._drop_oldest()
        return final

    def _drop_oldest(self) -> None:
        if self._keep:
            for path in self._paths()[: -self._keep]:
                remove(path)

    def _paths(self) -> list[UPath]:
        return [path for path in children(self._directory) if path.name.startswith("step-")]

    @property
    def is_empty(self) -> bool:
        return not self._paths()

    def check_empty(self) -> None:
        """Refuse a directory with the checkpoints of another run: a resume would take them for its own."""
        with storage_errors(self._directory, doing="read"):
            found = self._paths()
        if found:
            raise OutputExists(
                f"The checkpoint_dir {self._directory} holds checkpoints of another run, {found[-1].name} "
                "for one. Give another --checkpoint_dir, or replace them with --overwrite."
            )

    def clear(self) -> None:
        """Remove all checkpoints."""
        for path in self._paths():
            remove(path)

    def latest(self) -> tuple[Checkpoint | None, list[str]]:
        """The newest checkpoint that is whole, and what was wrong with newer ones."""
        faults: list[str] = []
        for path in reversed(self._paths()):
            try:
                return self.read(path), faults
            except CorruptData as error:
                faults.append(str(error))
        return None, faults

    def whole(self) -> Iterator[Checkpoint]:
        """All that are whole, the oldest first."""
        for path in self._paths():
            with contextlib.suppress(CorruptData):
                yield self.read(path)

    def require_latest(self) -> Checkpoint:
        """The newest whole checkpoint; raises `NotFound` when there is none."""
        checkpoint, faults = self.latest()
        if checkpoint is None:
            raise NotFound(
                f"There is no checkpoint in {self._directory}. {' '.join(faults)}".strip()
            )
        return checkpoint

    @staticmethod
    def read(path: UPath) -> Checkpoint:
        """Read one checkpoint and verify its checksum."""
        from safetensors import SafetensorError
        from safetensors.numpy import load

        try:
            manifest = json.loads((path / MANIFEST).read_bytes())
            if manifest["version"] != VERSION:
                raise CorruptData(
                    f"The checkpoint {path} is of the format {manifest['version']}, which this version "
                    f"of ElasticDL does not know (it knows {VERSION}). Install the one that wrote it."
                )
            content = (path / TENSORS).read_bytes()
            whole = manifest.pop("sha256") == _digest(manifest)
            if not whole or hashlib.sha256(content).hexdigest() != manifest["tensors"]["sha256"]:
                raise CorruptData(f"The checkpoint {path} is damaged: its checksum does not fit.")
            return Checkpoint(manifest["step"], path, load(content), manifest["state"])
        except CorruptData:
            raise
        except FileNotFoundError as error:
            raise CorruptData(f"The checkpoint {path} is not whole: a file is missing.") from error
        except OSError as error:
            raise CorruptData(f"The checkpoint {path} cannot be read: {reason(error)}.") from error
        except (ValueError, KeyError, TypeError, AttributeError, SafetensorError) as error:
            raise CorruptData(
                f"The checkpoint {path} is damaged: it does not hold what a checkpoint holds."
            ) from error


def find_checkpoint(path: UPath) -> Checkpoint:
    """A checkpoint, or the newest whole one of a directory of them or of a run."""
    with storage_errors(path, doing="read"):
        names = {child.name for child in children(path)}
        exists = path.exists()
    if not names:
        what = "is empty" if exists else "does not exist"
        raise NotFound(
            f"There is no checkpoint in {path}: it {what}. Give a run that saved some, with "
            "--checkpoint_steps=N."
        )
    if MANIFEST in names:
        return Checkpoints.read(path)
    inside = path / "checkpoints"
    return Checkpoints(inside if inside.name in names else path).require_latest()


def _digest(manifest: Mapping[str, Any]) -> str:
    """The checksum of the manifest's own content."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
