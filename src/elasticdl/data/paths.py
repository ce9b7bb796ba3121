"""From the text that names data to the files that hold it."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from typing import Any

from elasticdl.data.files import File
from elasticdl.errors import (
    DataError,
    NotFound,
    StorageFailure,
    UnknownName,
    near_match,
    reason,
)
from elasticdl.storage import file_system

__all__ = ["absolute", "expand"]

_SHARD = re.compile(r"^(.+)-(\d{5})-of-(\d{5})\.")


def expand(text: str, *, recursive: bool = False) -> list[File]:
    """The files that a path names: a file, a directory, a glob, or several of them with commas.

    Of a directory, the files directly in it count (all below it if `recursive`), without hidden
    files and markers such as `_SUCCESS`. Commas inside of braces, and of names that exist, separate
    nothing. Files come in the order of what named them, sorted inside of each, and each once.

    Raises:
        NotFound: nothing is there.
        MissingPackage: the address needs a driver that is not installed.
    """
    files: dict[str, File] = {}
    for piece in _pieces(text):
        for file in _expand_one(piece, recursive):
            files.setdefault(file.url, file)
    if not files:
        raise NotFound(f"No data: the path {text!r} is empty. Give a file, directory or glob.")
    return list(files.values())


def absolute(text: str) -> str:
    """The same names from any working directory; addresses stay as they are.

    >>> absolute("/data/a.csv,memory://data/*.csv")
    '/data/a.csv,memory://data/*.csv'
    """
    return ",".join(
        piece if "://" in piece or "::" in piece else os.path.abspath(os.path.expanduser(piece))
        for piece in _pieces(text)
    )


def _pieces(text: str) -> Iterator[str]:
    """Split at commas outside of braces and brackets, keeping names that exist whole."""
    parts = [part.strip() for part in _split(text)]
    if len(parts) > 1 and _exists(text.strip()):
        parts = [text.strip()]
    while parts:
        size = _num_joined(parts)
        if piece := ",".join(parts[:size]):
            yield piece
        parts = parts[size:]


def _num_joined(parts: list[str]) -> int:
    """How many of the parts make up the first name: more than one only if that name exists."""
    if not parts[0] or _has_magic(parts[0]) or _exists(parts[0]):
        return 1
    longer = range(2, len(parts) + 1)
    return next((size for size in longer if _exists(",".join(parts[:size]))), 1)


def _has_magic(text: str) -> bool:
    return any(char in text for char in "*?[{")


def _split(text: str) -> list[str]:
    parts, depth = [""], 0
    for char in text:
        depth += (char in "{[") - (char in "}]")
        if char == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def _exists(url: str) -> bool:
    try:
        fs, path = file_system(url)
    except UnknownName:  # a path and an address with a comma between them, for one
        return False
    return bool(fs.exists(path))


def _expand_one(url: str, recursive: bool) -> list[File]:
    fs, path = file_system(url)
    try:
        if fs.isdir(path):
            return _directory(fs, path, url, recursive)
        if fs.exists(path):
            return [_file(fs, fs.info(path))]
        infos = [info for pattern in _braces(path) for info in _glob(fs, pattern)]
    except FileNotFoundError as e:
        raise NotFound(f"There is no {url!r}: {reason(e)}. Check the path.") from e
    except OSError as e:
        raise StorageFailure(f"Cannot list {url}: {reason(e)}. Check its permissions.") from e
    if not infos:
        raise _not_found(fs, path, url)
    return [_file(fs, info) for info in infos]


def _directory(fs: Any, path: str, url: str, recursive: bool) -> list[File]:
    if recursive:
        listed = list(fs.find(path, detail=True).values())
    else:
        listed = fs.ls(path, detail=True)
    names = [info for info in listed if not _is_hidden(posixpath.relpath(info["name"], path))]
    infos = [info for info in names if _is_file(fs, info)]
    if not infos:
        help_ = f" To read its subdirectories, give {url.rstrip('/')}/*/*." if names else ""
        raise DataError(f"The directory {url} holds no files.{help_}")
    _check_whole([posixpath.basename(info["name"]) for info in infos], url)
    return [_file(fs, info) for info in sorted(infos, key=lambda info: info["name"])]


def _check_whole(names: list[str], url: str) -> None:
    """Shards say in their names how many there are: fewer were not written to the end."""
    found: dict[tuple[str, int], set[int]] = {}
    for name in names:
        if match := _SHARD.search(name):
            stem, number, total = match.groups()
            found.setdefault((stem, int(total)), set()).add(int(number))
    for (stem, total), numbers in found.items():
        if missing := sorted(set(range(total)) - numbers):
            raise DataError(
                f"The directory {url} holds {len(numbers)} of the {total} shards {stem}-*: number "
                f"{missing[0]} is missing for one. Were they written to the end? To read those that are "
                f"there, give {url.rstrip('/')}/{stem}-*."
            )


def _glob(fs: Any, pattern: str) -> list[dict[str, Any]]:
    if not any(char in pattern for char in "*?["):
        return [fs.info(pattern)] if fs.isfile(pattern) else []
    wants_hidden = posixpath.basename(pattern).startswith((".", "_"))
    found = fs.glob(pattern, detail=True)
    return [
        info
        for name, info in sorted(found.items())
        if _is_file(fs, info) and (wants_hidden or not _is_hidden(posixpath.basename(name)))
    ]


def _braces(pattern: str) -> list[str]:
    """`a{1,2}` as `a1` and `a2`."""
    before, opened, rest = pattern.partition("{")
    inside, closed, after = rest.partition("}")
    if not (opened and closed):
        return [pattern]
    return [before + choice + tail for choice in inside.split(",") for tail in _braces(after)]


def _is_file(fs: Any, info: dict[str, Any]) -> bool:
    # A symbolic link to a file says "link" or "other" of itself, depending on the file system.
    return info["type"] == "file" or (info["type"] != "directory" and bool(fs.isfile(info["name"])))


def _is_hidden(relative: str) -> bool:
    parts = relative.split("/")
    marker = parts[-1].startswith("_") and "." not in parts[-1]
    return marker or any(part.startswith(".") for part in parts)


def _file(fs: Any, info: dict[str, Any]) -> File:
    path = info["name"]
    local = "file" in ([fs.protocol] if isinstance(fs.protocol, str) else fs.protocol)
    url = path if local else fs.unstrip_protocol(path)
    size = os.path.getsize(path) if local else info.get("size")
    if size is None:
        raise DataError(
            f"{url} does not tell its size, so it cannot be read in parts. Copy it first."
        )
    return File(fs, path, url, int(size))


def _not_found(fs: Any, path: str, url: str) -> NotFound:
    if _has_magic(url):
        return NotFound(f"No file matches {url!r}. Check the pattern.")
    parent, name = posixpath.split(path.rstrip("/"))
    try:
        siblings = [posixpath.basename(str(p).rstrip("/")) for p in fs.ls(parent, detail=False)]
    except (OSError, ValueError):
        return NotFound(f"There is no {url!r}, nor its directory {parent!r}. Check the path.")
    if match := _near_file(name, siblings):
        return NotFound(f"There is no {url!r}. Did you mean {_beside(url, match)!r}?")
    shown = ", ".join(sorted(siblings)[:10]) + (", ..." if len(siblings) > 10 else "")
    held = f"holds {shown}" if siblings else "is empty"
    return NotFound(f"There is no {url!r}. The directory {parent!r} {held}.")


def _near_file(name: str, siblings: list[str]) -> str | None:
    """The file that was meant, told by its stem: a common ending brings no names together."""
    by_stem: dict[str, list[str]] = {}
    for sibling in siblings:
        by_stem.setdefault(sibling.partition(".")[0], []).append(sibling)
    stem = near_match(name.partition(".")[0], by_stem, cutoff=0.75)
    return near_match(name, by_stem[stem], cutoff=0.0) if stem else None


def _beside(url: str, name: str) -> str:
    """Another name in the directory that the user's own words lead to."""
    return posixpath.join(posixpath.dirname(url.rstrip("/")), name)
