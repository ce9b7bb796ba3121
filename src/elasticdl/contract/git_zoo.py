"""A zoo in a Git repository, as a directory of this machine: fetched once a commit, into a cache.

    <cache>/zoos/<name>-<hash of the address>/<commit>/   the files, nothing of git
                                             /.refs/      what each branch was when last fetched

A commit is written aside and renamed, so an entry is whole or not there, whoever else fetches it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from elasticdl.contract.git_address import GitAddress, parse_address
from elasticdl.contract.git_program import Git, Unreachable
from elasticdl.contract.git_tree import put_links, seal
from elasticdl.errors import ElasticDLError, NotFound, StorageFailure, UnknownName, nearest
from elasticdl.storage import place, storage_errors

__all__ = ["FetchedZoo", "as_begun", "cache_directory", "fetch_zoo"]

LOOKUP_S, FETCH_S = 60.0, 900.0
ABANDONED_S = 24 * 3600.0

_ABBREVIATED = re.compile(r"[0-9a-f]{4,39}")

Say = Callable[[str], None]


@dataclass(frozen=True)
class FetchedZoo:
    """A zoo that is here."""

    directory: Path
    name: str
    """What names this very zoo later: the whole path, or the address at its commit, without credentials."""


def fetch_zoo(zoo: str | os.PathLike[str] | None, say: Say | None = None) -> FetchedZoo:
    """The directory of a zoo, which may be a path or a Git address; the working directory by default.

    Args:
      zoo: a directory, or `https://host/models@branch-or-commit` and its like.
      say: called with a line before something is fetched.

    Raises:
      NotFound: no such directory, repository, or directory in the repository.
      UnknownName: no such branch, tag or commit.
      StorageFailure: the server cannot be reached or refuses.
    """
    address = parse_address(zoo or ".")
    if address is None:
        directory = Path(os.path.abspath(Path(zoo or ".").expanduser()))
        if not directory.is_dir():
            raise NotFound(
                f"The model zoo {str(zoo)!r} is not a directory (looked at {directory}). "
                "Give the directory that holds the model's Python file."
            )
        return FetchedZoo(directory, str(directory))
    cached = _Cached(address, say or (lambda line: None))
    commit = address.commit or cached.look_up()
    directory = cached.get(commit) / address.subdirectory
    found_as = address.found_as if address.commit else address.ref
    pinned = replace(address, ref=commit, found_as=found_as)
    if not directory.is_dir():
        raise NotFound(
            f"The model zoo {address} has no directory {address.subdirectory!r} at commit "
            f"{commit[:12]}. {nearest(address.subdirectory, _directories(cached.get(commit)))}"
        )
    return FetchedZoo(directory, str(pinned))


def as_begun(given: str | None, begun: str | None) -> str | None:
    """The zoo for a run that goes on: a branch that moved is what it was when the run began."""
    addresses = [parse_address(zoo) if zoo else None for zoo in (given, begun)]
    now, then = addresses
    if now is None or then is None or not now.names_the_same(then):
        return given
    kept = replace(now, ref=then.ref, found_as=then.found_as)
    return kept.with_credentials()


def cache_directory() -> Path:
    """`$ELASTICDL_CACHE`, else where the system keeps caches."""
    if given := os.environ.get("ELASTICDL_CACHE"):
        return Path(given).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "elasticdl"


def _directories(root: Path) -> list[str]:
    found = (path for path in root.rglob("*") if path.is_dir() and not path.is_symlink())
    return [path.relative_to(root).as_posix() for path in found]


class _Cached:
    """What is here of one repository, and what has to be fetched."""

    def __init__(self, address: GitAddress, say: Say) -> None:
        self._address = address
        self._git = Git(address)
        self._say = say
        name = re.sub(r"[^\w.-]", "", re.split("[/:]", address.url)[-1].removesuffix(".git"))
        digest = hashlib.sha256(address.url.encode()).hexdigest()[:16]
        self._root = cache_directory() / "zoos" / f"{name}-{digest}"

    def look_up(self) -> str:
        """The commit that the branch or tag is at, by the server's word."""
        ref = self._address.ref or "HEAD"
        try:
            answer = self._git.run("ls-remote", "--", self._address.url, limit_s=LOOKUP_S).decode()
        except Unreachable as error:
            raise self._with_what_is_cached(error, ref) from error
        refs = {
            name: commit for commit, _, name in (x.partition("\t") for x in answer.splitlines())
        }
        for name in (f"refs/heads/{ref}", f"refs/tags/{ref}^{{}}", f"refs/tags/{ref}", ref):
            if name in refs:
                return self._remember(ref, refs[name])
        if _ABBREVIATED.fullmatch(ref) and (commit := self._whole(ref)):
            return commit
        raise self._no_such_ref(ref, refs)

    def get(self, commit: str) -> Path:
        """The directory of a commit."""
        final = self._root / commit
        if not final.is_dir():
            self._say(f"Fetching the model zoo {self._address.url} at commit {commit[:12]}")
            with self._aside() as aside:
                repository, files = aside / "git", aside / "files"
                self._fetch(repository, commit)
                self._write(repository, commit, files)
                try:
                    files.rename(final)
                except OSError:  # another process may have been faster
                    if not final.is_dir():
                        raise
        return final

    def _with_what_is_cached(self, error: Unreachable, ref: str) -> Unreachable:
        remembered = self._remembered(ref)
        if not remembered.is_file():
            return error
        commit = remembered.read_text(encoding="ascii").strip()
        what = f"The branch {ref!r}" if self._address.ref else "The default branch"
        known = replace(self._address, ref=commit, found_as=None)
        return Unreachable(
            f"{error} {what} was at {commit[:12]} when it was last fetched: to train that, offline, "
            f"give {known}"
        )

    def _remembered(self, ref: str) -> Path:
        return self._root / ".refs" / hashlib.sha256(ref.encode()).hexdigest()[:16]

    def _remember(self, ref: str, commit: str) -> str:
        # A cache that cannot be written to, in an image, may well hold the commit.
        with contextlib.suppress(StorageFailure), self._aside() as aside:
            (aside / "ref").write_text(f"{commit}\n", encoding="ascii")
            self._remembered(ref).parent.mkdir(exist_ok=True)
            (aside / "ref").replace(self._remembered(ref))
        return commit

    @contextlib.contextmanager
    def _aside(self) -> Iterator[Path]:
        """A directory to work in, beside the entries; what a killed process left is swept out."""
        with storage_errors(place(self._root)):
            self._root.mkdir(parents=True, exist_ok=True)
            for old in self._root.glob(".aside-*"):
                with contextlib.suppress(OSError):
                    if time.time() - old.stat().st_mtime > ABANDONED_S:
                        shutil.rmtree(old, ignore_errors=True)
            aside = Path(tempfile.mkdtemp(prefix=".aside-", dir=self._root))
            try:
                yield aside
            finally:
                shutil.rmtree(aside, ignore_errors=True)

    def _fetch(self, repository: Path, commit: str) -> None:
        """The one commit; from a server that gives out no single ones, everything."""
        self._new_repository(repository)
        try:
            self._pull(repository, "--depth=1", "--", self._address.url, commit)
            return
        except Unreachable:
            raise
        except ElasticDLError:
            self._pull_all(repository)
        try:
            self._in(repository, "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}")
        except ElasticDLError as error:
            raise UnknownName(
                f"The repository {self._address.url} has no commit {commit}, or not in a branch."
            ) from error

    def _whole(self, abbreviated: str) -> str | None:
        """The whole name of a commit of which the beginning was given."""
        with self._aside() as aside:
            self._new_repository(aside / "git")
            self._pull_all(aside / "git")
            try:
                name = f"{abbreviated}^{{commit}}"
                found = self._in(aside / "git", "rev-parse", "--verify", "--quiet", name)
            except ElasticDLError:
                return None
        return found.decode().strip()

    def _new_repository(self, repository: Path) -> None:
        length = len(self._address.commit or "")
        kind = ["--object-format=sha256"] if length == 64 else []
        self._git.run("init", "--quiet", "--bare", *kind, "--", repository, limit_s=LOOKUP_S)

    def _pull(self, repository: Path, *arguments: str) -> None:
        options = ("--quiet", "--no-tags", "--no-recurse-submodules")
        self._git.run("-C", repository, "fetch", *options, *arguments, limit_s=FETCH_S)

    def _pull_all(self, repository: Path) -> None:
        refs = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
        self._pull(repository, "--", self._address.url, *refs)

    def _in(self, repository: Path, *arguments: str | Path) -> bytes:
        return self._git.run("-C", repository, *arguments, limit_s=FETCH_S)

    def _write(self, repository: Path, commit: str, files: Path) -> None:
        """The files of a commit: no filter of theirs runs, and no link leads out."""
        files.mkdir()
        self._in(repository, "read-tree", commit)
        places = (f"--git-dir={repository}", f"--work-tree={files}")
        self._git.run(*places, "checkout-index", "--all", "--quiet", limit_s=FETCH_S)
        put_links(files, self._in(repository, "ls-tree", "-r", "-z", commit))
        seal(files)

    def _no_such_ref(self, ref: str, refs: dict[str, str]) -> UnknownName:
        if not self._address.ref:
            return UnknownName(f"The repository {self._address.url} has no commit yet.")
        known = [re.sub(r"^refs/(heads|tags)/|\^\{\}$", "", name) for name in refs]
        known = [name for name in known if not name.startswith("refs/") and name != "HEAD"]
        return UnknownName(
            f"The repository {self._address.url} has no branch, tag or commit {ref!r}. "
            f"{nearest(ref, known)}"
        )
