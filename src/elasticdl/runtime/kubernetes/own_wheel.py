"""ElasticDL as it is here, as a wheel: what is tried on this machine is what runs in the cluster.

It is put together from the installed package, so that a checkout and an installed wheel do alike. The same
files give the same bytes, and an engine finds its layer again.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import io
import zipfile
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from elasticdl.errors import MissingPackage

__all__ = ["NAME", "Wheel", "own_distribution", "own_wheel", "own_wheel_name"]

NAME = "elasticdl"
PACKAGES = ("abstractions", "elasticdl")
EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The time of every file: a zip archive knows no earlier one."""

_WHEEL = "Wheel-Version: 1.0\nGenerator: elasticdl\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


@dataclass(frozen=True)
class Wheel:
    """A wheel's file."""

    name: str
    content: bytes


def own_distribution() -> Distribution:
    """What pip knows of ElasticDL."""
    try:
        return distribution(NAME)
    except PackageNotFoundError as error:
        raise MissingPackage(
            "ElasticDL runs here without being installed, so it cannot be put into an image. Install it with: "
            "pip install -e . in its checkout, or give --image_name an image that has it."
        ) from error


def own_wheel_name() -> str:
    return f"{NAME}-{own_distribution().version}-py3-none-any.whl"


def own_wheel() -> Wheel:
    """ElasticDL's packages with their console script, as pip installs them."""
    installed = own_distribution()
    about = f"{NAME}-{installed.version}.dist-info"
    files = {name: content for package in PACKAGES for name, content in _package(package)}
    files[f"{about}/METADATA"] = _metadata(installed).encode()
    files[f"{about}/WHEEL"] = _WHEEL.encode()
    files[f"{about}/entry_points.txt"] = (installed.read_text("entry_points.txt") or "").encode()
    record = f"{about}/RECORD"
    lines = [f"{name},sha256={_sum(content)},{len(content)}" for name, content in files.items()]
    files[record] = "\n".join([*lines, f"{record},,", ""]).encode()
    return Wheel(own_wheel_name(), _zipped(files))


def _metadata(installed: Distribution) -> str:
    """A checkout that is on sys.path before the installed packages has it by setuptools' name."""
    found = installed.read_text("METADATA") or installed.read_text("PKG-INFO")
    assert found, installed
    return found


def _package(package: str) -> list[tuple[str, bytes]]:
    spec = importlib.util.find_spec(package)
    assert spec is not None and spec.origin is not None, package
    root = Path(spec.origin).parent
    found = []
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root)
        if path.is_file() and not any(p.startswith(".") or p == "__pycache__" for p in name.parts):
            found.append((f"{package}/{name.as_posix()}", path.read_bytes()))
    return found


def _sum(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")


def _zipped(files: dict[str, bytes]) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as wheel:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, EARLIEST)
            entry.external_attr = 0o644 << 16
            wheel.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return archive.getvalue()
