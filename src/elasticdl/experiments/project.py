"""A project's directory: `runs/<run_name>/config.yaml`, the sources beside it, and their version."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from upath import UPath

from elasticdl.errors import InvalidValue, NotFound, near_match, nearest
from elasticdl.experiments.code_version import CodeVersion, code_version
from elasticdl.experiments.config import RunConfig
from elasticdl.storage import children, is_local, place, storage_errors

__all__ = ["CodeVersion", "Project", "find_config"]

RUNS = "runs"


@dataclass(frozen=True)
class Project:
    """One run of one project.

    Attributes:
      root: the project's directory, absolute.
      run_name: the name of the run.
      run_directory: what the run reads its config from and writes to, here or at an address.
      config_file: the one YAML file of the run.
    """

    root: Path
    run_name: str
    run_directory: UPath
    config_file: UPath

    @classmethod
    def open(
        cls,
        project_root: str | os.PathLike[str],
        run_name: str,
        runs_dir: str | os.PathLike[str] | None = None,
    ) -> Project:
        """Find a run of a project.

        Args:
          project_root: the directory that holds `runs/` and the sources.
          run_name: the name of a directory in `runs/`.
          runs_dir: another place for the run directories. A run that has no config there is
            configured in the project's own `runs/`.

        Raises:
          NotFound: no project, no run or no config there, with what is.
          InvalidValue: several configs.
        """
        root = _root(project_root)
        name = _checked(run_name)
        own = UPath(str(root / RUNS))
        runs = own if runs_dir is None else place(runs_dir)
        directory = UPath(os.path.abspath(str(runs))) / name if is_local(runs) else runs / name
        return cls(root, name, directory, _config_file(directory, own / name))

    def source_directory(self, config: RunConfig) -> Path:
        """The directory of the user's code."""
        source = Path(os.path.abspath(self.root / config.src_code_path))
        if source.is_dir():
            return source
        inside = [p.name for p in self.root.iterdir() if p.is_dir() and not p.name.startswith(".")]
        what = "is a file" if source.exists() else "does not exist"
        raise NotFound(
            f"The src_code_path {config.src_code_path!r} {what}: looked for {source}. Give the directory "
            f"of your code, seen from the project's root. {nearest(config.src_code_path, inside)}".rstrip()
        )

    def code_version(self, config: RunConfig | None = None) -> CodeVersion:
        """The commit of the code, and a hash of its sources: of the whole project without a config."""
        return code_version(self.root if config is None else self.source_directory(config))


def _root(given: str | os.PathLike[str]) -> Path:
    if "://" in str(given):
        raise InvalidValue(
            f"Invalid project_root {str(given)!r}: code is run from this machine. Give a local directory; "
            "runs_dir may be an address."
        )
    root = Path(os.path.abspath(Path(given).expanduser()))
    if not root.is_dir():
        raise NotFound(f"There is no project_root {root}. Give the directory that holds {RUNS}/.")
    return root


def _checked(run_name: str) -> str:
    name = run_name.rstrip("/")
    if not name or name in (".", "..") or "/" in name or "\\" in name:
        advice = f" Give the name alone: {last!r}." if (last := name.rpartition("/")[2]) else ""
        raise InvalidValue(
            f"Invalid run_name {run_name!r}: it is the name of a directory in {RUNS}/.{advice}"
        )
    return name


def find_config(directory: UPath) -> UPath:
    """The one YAML file of a run directory. None or several are an error that lists what is there."""
    found = _only_config(directory)
    if found is None:
        raise _no_config(directory)
    return found


def _config_file(directory: UPath, own: UPath) -> UPath:
    """The config beside the run's outputs, or in the project when they lie elsewhere."""
    if str(own) == str(directory):
        return find_config(directory)
    found, in_project = _only_config(directory), _only_config(own)
    if in_project is None:
        return find_config(directory)
    if found is not None and found.read_bytes() != in_project.read_bytes():
        raise InvalidValue(
            f"This run has two configs that differ: {found} and {in_project}. Remove one."
        )
    return in_project


def _only_config(directory: UPath) -> UPath | None:
    with storage_errors(directory, doing="read"):
        found = [
            path
            for path in children(directory)
            if path.suffix in (".yaml", ".yml") and not path.name.startswith(".")
        ]
    if len(found) > 1:
        raise InvalidValue(
            f"There are {len(found)} configs in {directory}: {_listed(found)}. Keep one of them there."
        )
    return found[0] if found else None


def _no_config(directory: UPath) -> NotFound:
    """Whether the name is wrong or the file is missing, with what is there instead."""
    inside = children(directory)
    if inside:
        return NotFound(
            f"There is no config in {directory}: no file there ends in .yaml or .yml. There is: "
            f"{_listed(inside)}."
        )
    runs = [path.name for path in children(directory.parent) if path.is_dir()]
    if directory.is_dir():
        return NotFound(f"{directory} is empty. Put a config.yaml there.")
    if not runs:
        return NotFound(
            f"There is no run {directory.name!r}: {directory.parent} "
            f"{'is empty' if directory.parent.is_dir() else 'does not exist'}. Check project_root, or "
            f"write {directory / 'config.yaml'}."
        )
    match = near_match(directory.name, runs)
    advice = f"Did you mean {match!r}? " if match else ""
    return NotFound(
        f"There is no run {directory.name!r} in {directory.parent}. {advice}There is: {', '.join(runs)}."
    )


def _listed(paths: Iterable[UPath]) -> str:
    return ", ".join(path.name for path in paths)
