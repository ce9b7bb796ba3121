"""What a zoo needs: its `requirements.txt` against the packages that are installed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from elasticdl.errors import InvalidValue, MissingPackage, NotFound, reason

__all__ = ["Unmet", "check_requirements", "unmet_requirement", "unmet_requirements"]

FILE = "requirements.txt"
FEW = 3
"""Up to this many packages are named in the pip line; more are left to the file."""

_COMMENT = re.compile(r"(^|\s)#.*$")
_FURTHER = re.compile(r"(?:-r|--requirement)[\s=]*(?P<file>\S.*)")
_PLACE = re.compile(r"[a-z+]+://|\.{0,2}/|\.$|[^@]*\.(whl|zip|tar\.\w+)$|[A-Za-z]:\\")
"""A line that names a place to install from and no package whose version could be looked up."""
_CREDENTIALS = re.compile(r"//[^/]*@")


@dataclass(frozen=True)
class Unmet:
    """A requirement that does not hold."""

    required: str
    """As pip takes it."""
    installed: str | None
    through: str | None = None
    """The package that it belongs to, when it comes with an extra: `ray[default]`."""

    def __str__(self) -> str:
        found = f"installed: {self.installed}" if self.installed else "not installed"
        return f"{self.through or self.required} ({self._by_way()}{found})"

    def _by_way(self) -> str:
        return f"needs {self.required}; " if self.through else ""


def check_requirements(zoo: Path) -> None:
    """Raise `MissingPackage` with the pip line unless all that the zoo requires is installed."""
    if unmet := unmet_requirements(zoo):
        raise MissingPackage(
            f"The model zoo requires what is not installed: {', '.join(map(str, unmet))}. "
            f"Install it with: {pip_line(zoo, unmet)}"
        )


def pip_line(zoo: Path, unmet: list[Unmet]) -> str:
    wanted = list(dict.fromkeys(u.through or u.required for u in unmet))
    if len(wanted) <= FEW:
        return shlex.join(["pip", "install", *wanted])
    return shlex.join(["pip", "install", "-r", str(zoo / FILE)])


def unmet_requirements(zoo: Path) -> list[Unmet]:
    """What the zoo's `requirements.txt` asks for and is not there; a zoo without the file asks nothing."""
    if not (zoo / FILE).is_file():
        return []
    found = [
        unmet_requirement(requirement)
        for requirement in _requirements(zoo.resolve(), zoo / FILE, set())
    ]
    return list(dict.fromkeys(unmet for unmet in found if unmet))


def _requirements(zoo: Path, file: Path, read: set[Path]) -> Iterator[Requirement]:
    """Those of a file and of the files of the zoo that it names, for this machine."""
    read.add(file.resolve())
    for number, line in _lines(file):
        if further := _FURTHER.match(line):
            other = file.parent / further["file"].strip("'\" ")
            if not other.resolve().is_relative_to(zoo) or other.resolve() in read:
                continue
            if not other.is_file():
                raise NotFound(
                    f"{file}, line {number}: there is no {other}. Write it or leave it out."
                )
            yield from _requirements(zoo, other, read)
        elif not line.startswith("-") and not _PLACE.match(line):
            requirement = _parse(line, file, number)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                yield requirement


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    """The lines that say something, each with its number; a backslash joins a line to the next."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidValue(f"Cannot read {file}: {reason(error)}. Save it as UTF-8.") from error
    except OSError as error:
        raise NotFound(f"Cannot read {file}: {reason(error)}.") from error
    begun, held = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        begun = begun if held else number
        if line.endswith("\\"):
            held += line[:-1]
            continue
        # An option of a single package, such as --hash, does not change what is required.
        said = re.split(r"\s--?\w", _COMMENT.sub("", held + line).strip())[0]
        held = ""
        if said:
            yield begun, said


def _parse(line: str, file: Path, number: int) -> Requirement:
    try:
        return Requirement(line)
    except InvalidRequirement as error:
        why = reason(error).splitlines()[0]
        raise InvalidValue(
            f"{file}, line {number}: cannot read {line!r}: {why}. "
            "Write a line such as: scikit-learn>=1.4"
        ) from error


def unmet_requirement(requirement: Requirement, through: str | None = None) -> Unmet | None:
    """The requirement itself, or the first of those that its extras bring, that is not there."""
    required = _plainly(requirement)
    try:
        installed = distribution(requirement.name)
    except PackageNotFoundError:
        return Unmet(required, None, through)
    if not requirement.specifier.contains(installed.version, prereleases=True):
        return Unmet(required, installed.version, through)
    for extra in requirement.extras:
        for text in installed.requires or ():
            further = Requirement(text)
            if (
                further.marker is not None
                and not further.marker.evaluate({"extra": ""})
                and further.marker.evaluate({"extra": extra})
                and (unmet := unmet_requirement(further, through or required))
            ):
                return unmet
    return None


def _plainly(requirement: Requirement) -> str:
    """Without the marker, which holds here, without blanks and without credentials."""
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    place = f" @ {_CREDENTIALS.sub('//', requirement.url)}" if requirement.url else ""
    return f"{requirement.name}{extras}{requirement.specifier}{place}"
