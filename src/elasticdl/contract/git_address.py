"""The address of a zoo in a Git repository: how it is written, shown and kept.

    https://host/models@main#subdirectory=zoo
    \\_______ url ______/ \\ref/

What is shown and kept has no credentials in it.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from urllib.parse import parse_qsl, quote, urlencode

from elasticdl.errors import InvalidValue, UnknownName, nearest

__all__ = ["GitAddress", "parse_address"]

SCHEMES = ("https", "http", "ssh", "git", "file")
_URL = re.compile(r"(?:git\+)?(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<host>[^/]*)(?P<path>/.*)?", re.I)
_HOST = re.compile(r"(?:\[[0-9a-f:.%]+\]|[^:\[\]]*)(?::\d*)?", re.I)
_SCP = re.compile(r"(?P<host>[\w.-]+@[\w.-]+):(?P<path>(?!//).+)")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_BROWSED = re.compile(r"(?P<url>.+?)/(?:-/)?(?:tree|blob)/(?P<ref>[^/]+)(?:/(?P<below>.+))?$")


@dataclass(frozen=True)
class GitAddress:
    """A repository, what of it, and how to get there."""

    url: str
    """Without credentials."""
    ref: str | None = None
    """A branch, a tag or a commit; None is the default branch."""
    subdirectory: str = ""
    found_as: str | None = None
    """The branch or tag that `ref`, a commit, was found as."""
    url_with_credentials: str | None = field(default=None, repr=False)

    @property
    def commit(self) -> str | None:
        """The ref, when it is a whole commit."""
        return self.ref if self.ref and _COMMIT.fullmatch(self.ref) else None

    def __str__(self) -> str:
        return f"{self.url}{self._after_url()}"

    def with_credentials(self) -> str:
        """To be parsed again, never to be shown."""
        return f"{self.url_with_credentials or self.url}{self._after_url()}"

    def _after_url(self) -> str:
        parts = {"subdirectory": self.subdirectory, "ref": self.found_as}
        said = urlencode({k: v for k, v in parts.items() if v}, safe="/", quote_via=quote)
        return f"{f'@{self.ref}' if self.ref else ''}{f'#{said}' if said else ''}"

    def names_the_same(self, pinned: GitAddress) -> bool:
        """Whether `pinned` was made of this address, be it when the branch was elsewhere."""
        here, there = (self.url, self.subdirectory), (pinned.url, pinned.subdirectory)
        return here == there and self.ref in (pinned.found_as, pinned.ref)

    def browsed(self) -> str:
        """A sentence that helps who copied the address of a page of the repository."""
        found = _BROWSED.match(self.url)
        if not found:
            return ""
        below = f"#subdirectory={found['below']}" if found["below"] else ""
        return f" Is it a page of a repository? Give {found['url']}@{found['ref']}{below}."


def parse_address(zoo: str | os.PathLike[str]) -> GitAddress | None:
    """The address that a user wrote, or None for a directory.

    Raises `InvalidValue` or `UnknownName` for what is neither.

    >>> parse_address("git@host:models@v1").ref
    'v1'
    >>> str(parse_address("https://me:secret@host/models@main"))
    'https://host/models@main'
    """
    text = os.fspath(zoo)
    base, _, fragment = text.partition("#")
    if url := _URL.fullmatch(base):
        scheme, host, path = url["scheme"].lower(), url["host"], url["path"] or ""
        before = f"{scheme}://"
    elif (scp := _SCP.fullmatch(base)) and not os.path.isdir(text):
        scheme, host, path, before = "ssh", scp["host"], f":{scp['path']}", ""
    else:
        return None
    if before and not _HOST.fullmatch(host.rpartition("@")[2]):
        raise InvalidValue(  # and not a letter of it is shown
            "Invalid model zoo: the host in its address cannot be read. In a name or password before "
            "it, write %2F for /, %23 for # and %40 for @."
        )
    path, ref = _part(path)
    address = f"{host.rpartition('@')[2]}{path}"
    if scheme not in SCHEMES:
        raise UnknownName(
            f"The model zoo {before}{address} is neither a directory nor in a Git repository. "
            f"Give a path or an address that begins with https://, ssh:// or git@. "
            f"{nearest(scheme, SCHEMES)}"
        )
    _check(before + address, host, path, ref)
    kept = _kept(scheme, host)
    return GitAddress(
        url=f"{before}{kept}{path}",
        ref=ref,
        url_with_credentials=f"{before}{host}{path}" if kept != host else None,
        **_fragment(fragment, before + address),
    )


def _part(path: str) -> tuple[str, str | None]:
    """The path and the ref after its last `@`; one that begins a name belongs to the name."""
    before, at, ref = path.rpartition("@")
    if not at or before.endswith(("/", ":")) or not before:
        return path.rstrip("/"), None
    return before.rstrip("/"), ref


def _kept(scheme: str, host: str) -> str:
    """The host without what is secret. To ssh the name is part of the address: `git@host`."""
    user, at, name = host.rpartition("@")
    if scheme in ("ssh", "git") and at:
        return f"{user.partition(':')[0]}@{name}"
    return name


def _check(shown: str, host: str, path: str, ref: str | None) -> None:
    # Whatever begins with a dash could be taken for an option of git or ssh.
    name = host.rpartition("@")[2]
    if not path.strip("/:") or host.startswith("-") or name.startswith("-") or path[1:2] == "-":
        raise InvalidValue(
            f"Invalid model zoo {shown}: it names no repository. Give, for example, "
            "https://github.com/me/models@main."
        )
    if ref is not None and (
        not ref or ref.startswith("-") or re.search(r"[\s~^:?*\[\\]|\.\.", ref)
    ):
        raise InvalidValue(
            f"Invalid model zoo {shown}: {ref!r} after the @ is no branch, tag or commit."
        )
    if re.search(r"[\x00-\x20\x7f]", shown):
        raise InvalidValue(
            f"Invalid model zoo {shown!r}: an address has no blanks. Write %20 for one."
        )


def _fragment(text: str, shown: str) -> dict[str, str]:
    """What stands behind the `#`, in pip's spelling: `subdirectory=models`."""
    given = dict(parse_qsl(text, keep_blank_values=True))
    for name in given:
        if name not in ("subdirectory", "ref"):
            raise InvalidValue(
                f"Invalid model zoo {shown}: there is no #{name}=. Give #subdirectory=DIR."
            )
    if text and not given:
        raise InvalidValue(f"Invalid model zoo {shown}: give #subdirectory=DIR after the #.")
    below = PurePosixPath(given.get("subdirectory", ""))
    if below.is_absolute() or ".." in below.parts:
        raise InvalidValue(
            f"Invalid model zoo {shown}: the subdirectory {str(below)!r} is not inside the "
            "repository."
        )
    found_as = {"found_as": given["ref"]} if given.get("ref") else {}
    return {"subdirectory": "" if str(below) == "." else str(below), **found_as}
