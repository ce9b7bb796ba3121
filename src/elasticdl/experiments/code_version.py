"""Which version of the user's code a run was made with: the commit, and a hash of the sources."""

from __future__ import annotations

import hashlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from elasticdl.contract.zoo import source_files

__all__ = ["CodeVersion", "code_version"]

_SAFE = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
_LIMIT_S = 20


@dataclass(frozen=True)
class CodeVersion:
    """The commit ("none" where git does not know the code), and a sha256 over the Python files."""

    commit: str
    dirty: bool
    source_hash: str

    def __str__(self) -> str:
        if self.commit == "none":
            return f"none (sources {self.source_hash[:12]})"
        return f"{self.commit}{' with changes' if self.dirty else ''}"


def code_version(source: Path) -> CodeVersion:
    """The version of the code in a directory. Never fails: a project need not be a repository."""
    source_hash = _hash(source)
    # Known to git means more than to lie below some repository: a copy in a checkout is not its code.
    if not _git(source, "ls-files", "--", "."):
        return CodeVersion("none", False, source_hash)
    commit = _git(source, "rev-parse", "--verify", "HEAD")
    if not commit:
        return CodeVersion("none", False, source_hash)
    changes = _git(source, "status", "--porcelain", "--", ".")
    return CodeVersion(commit, bool(changes), source_hash)


def _hash(source: Path) -> str:
    """Over the names and contents, each with its length, so that no two sets of files are alike."""
    digest = hashlib.sha256()
    for path in source_files(source):
        for part in (path.relative_to(source).as_posix().encode(), path.read_bytes()):
            digest.update(f"{len(part)}:".encode())
            digest.update(part)
    return digest.hexdigest()


def _git(directory: Path, *arguments: str) -> str:
    """What git printed, nothing when it failed or is not there."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    # A look at the state is not to write git's index, which somebody else may be using.
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["git", "-C", str(directory), *_SAFE, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment,
            timeout=_LIMIT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else ""
