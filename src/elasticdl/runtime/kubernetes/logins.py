"""Names and passwords inside of addresses: in no message, and in no file for pip that goes into an image."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

from elasticdl.contract.snapshot import REQUIREMENTS
from elasticdl.errors import InvalidValue

__all__ = ["check_logins", "has_password", "login_of", "without_login"]

FOR_PIP = ("*requirements*", "*constraints*", "pip.conf", "pip.ini")
"""Files that pip reads, besides those which they name."""

_FRONT = re.compile(r"^((?:[A-Za-z][\w+.-]*://)?).*@", re.DOTALL)
_LOGIN = re.compile(r"(?P<scheme>[A-Za-z][\w+.-]*)://(?P<login>[^\s/?#]+)@(?P<host>[^\s/?#@]*)")
_NAMED = re.compile(r"\s*(?:-r|-c|--requirement|--constraint)[\s=]*(?P<name>[^\s#]+)")


def without_login(address: str) -> str:
    """An address to stand in a message. A password may hold an @ or a /, so the last @ ends it.

    >>> without_login("https://scott:ti/ger@pypi.example.com/simple")
    'https://...@pypi.example.com/simple'
    >>> without_login("unix:///run/docker.sock")
    'unix:///run/docker.sock'
    """
    return _FRONT.sub(r"\1...@", address)


def login_of(address: str) -> str:
    """What stands before the last @; sockets have none, whatever their path.

    >>> login_of("tcp://me:tiger@host:2376"), login_of("unix:///run/me@here/docker.sock")
    ('me:tiger', '')
    """
    scheme, _, rest = address.rpartition("://")
    return "" if scheme in ("unix", "http+unix", "npipe") else rest.rpartition("@")[0]


def has_password(address: str) -> bool:
    """Whether more than a user's name may stand before the last @.

    >>> has_password("ssh://me@build.example.com"), has_password("tcp://me:tiger@host:2376")
    (False, True)
    """
    login = login_of(address)
    return ":" in login or bool(login and not address.partition("://")[0].endswith("ssh"))


def check_logins(zoo: Path, names: Sequence[str]) -> None:
    """Raise `InvalidValue` when one of the zoo's files for pip has credentials in an address."""
    for name in _for_pip(zoo, names):
        for number, line in enumerate(_lines(zoo / name), start=1):
            for found in _LOGIN.finditer(line):
                if has_password(found[0]) and "${" not in found["login"]:
                    raise InvalidValue(_refusal(name, number, found))


def _refusal(name: str, number: int, found: re.Match[str]) -> str:
    return (
        f"The file {name} of the model zoo has credentials in line {number} ({found['scheme']}://...@{found['host']}), "
        "which everybody who gets the image could read. Give --image_base an image whose pip knows the address, or "
        f"write ${{NAME}} for a variable that it has. To take the file as it is: --image_include={name}"
    )


def _for_pip(zoo: Path, names: Sequence[str]) -> Iterator[str]:
    """Those among the names that pip reads, also because another one names them."""
    waiting = [name for name in names if _is_for_pip(name)]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop(0)
        if name in seen or name not in names:
            continue
        seen.add(name)
        yield name
        for line in _lines(zoo / name):
            if named := _NAMED.match(line):
                waiting.append((Path(name).parent / named["name"]).as_posix())


def _is_for_pip(name: str) -> bool:
    path = Path(name)
    if path.suffix == ".py":
        return False
    return name == REQUIREMENTS or any(fnmatch(part, p) for part in path.parts for p in FOR_PIP)


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8", errors="replace").splitlines()
