"""What ElasticDL needs, in the versions that are installed here: the cluster trains with what was tried."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from elasticdl.contract.requirements import unmet_requirement
from elasticdl.errors import MissingPackage
from elasticdl.runtime.kubernetes.own_wheel import NAME, own_distribution

__all__ = ["Pins", "installed_extras", "pins"]

NOT_TAKEN = ("dev",)
"""An extra of who works on ElasticDL itself."""

STORAGE = ("adlfs", "gcsfs", "ossfs", "s3fs")
"""No extra has them, and without them the cluster does not reach the bucket that is reached from here."""


@dataclass(frozen=True)
class Pins:
    """Two files for pip."""

    requirements: str
    """What ElasticDL names itself."""
    constraints: str
    """All that comes with it. Of these an image gets what its own system needs."""


def pins() -> Pins:
    """The installed versions of what ElasticDL needs, with its extras that are installed.

    Raises:
      MissingPackage: Ray is not among them.
    """
    extras = installed_extras()
    if "ray" not in extras:
        raise MissingPackage(
            "A job in a cluster runs on Ray, and the image gets what is installed here, where Ray is not. "
            "Install it with: pip install 'elasticdl[ray]'"
        )
    wanted = [Requirement(f"{NAME}[{','.join(extras)}]"), *map(Requirement, STORAGE)]
    return Pins(
        requirements=_lines(_own(extras)),
        constraints=_lines(
            name for requirement in wanted for name in _with_all(requirement, set())
        ),
    )


def installed_extras() -> list[str]:
    """The extras of which everything is installed."""
    offered = own_distribution().metadata.get_all("Provides-Extra") or []
    return [
        extra
        for extra in sorted(offered)
        if extra not in NOT_TAKEN and unmet_requirement(Requirement(f"{NAME}[{extra}]")) is None
    ]


def _own(extras: list[str]) -> Iterator[str]:
    direct = [r for extra in ["", *extras] for r in _required(own_distribution(), extra)]
    for requirement in [*direct, *map(Requirement, STORAGE)]:
        if requirement.name != NAME and (installed := _installed(requirement.name)):
            yield _pin(requirement.name, installed, requirement.extras)


def _with_all(requirement: Requirement, seen: set[tuple[str, str]]) -> Iterator[str]:
    """A requirement and, through what it requires, all that is installed because of it."""
    installed = _installed(requirement.name)
    if installed is None:
        return
    if canonicalize_name(requirement.name) != NAME:
        yield _pin(requirement.name, installed)
    for extra in ["", *requirement.extras]:
        if (requirement.name, extra) not in seen:
            seen.add((requirement.name, extra))
            for further in _required(installed, extra):
                yield from _with_all(further, seen)


def _required(installed: Distribution, extra: str) -> Iterator[Requirement]:
    """What an extra adds, or without one what is required anyway, on this machine."""
    for text in installed.requires or ():
        requirement = Requirement(text)
        marker = requirement.marker
        always = marker is None or marker.evaluate({"extra": ""})
        if always != bool(extra) and (always or (marker and marker.evaluate({"extra": extra}))):
            yield requirement


def _installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def _pin(name: str, installed: Distribution, extras: set[str] | None = None) -> str:
    """Without the local part of a version (`2.1+cpu`), which an index does not have."""
    with_extras = f"[{','.join(sorted(extras))}]" if extras else ""
    return f"{canonicalize_name(name)}{with_extras}=={Version(installed.version).public}"


def _lines(pinned: Iterator[str]) -> str:
    return "".join(f"{line}\n" for line in sorted(set(pinned)))
