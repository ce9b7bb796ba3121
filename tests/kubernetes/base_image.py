"""A base image without the internet: this machine's Python, and of its packages what pip reads of them.

The packages themselves, gigabytes, are not in it. pip sees that they are installed and does nothing. A
container that runs mounts this machine's at `PACKAGES`, where Python looks for them.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

PACKAGES = "/opt/packages"
PREFIX = Path("usr/local")
LEFT_OUT = {"__pycache__", "idlelib", "site-packages", "dist-packages", "test", "tests", "tkinter"}

WGET = "#!/bin/sh\nexit 1\n"
"""The images of Python have none and install it; here there is nothing to install it from."""


def write_base_image(archive: Path, index: str) -> None:
    """The root file system as a tar archive, whose pip knows one index only."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = PREFIX / "lib" / version / "site-packages"
    with tarfile.open(archive, "w") as tar:
        for name in ("tmp", "root", "proc", "sys", "dev", "etc"):
            _directory(tar, name)
        _text(tar, "etc/passwd", "root:x:0:0:root:/root:/bin/sh\n")
        _text(tar, "etc/pip.conf", f"[global]\nindex-url = {index}\n")
        _text(tar, "usr/bin/wget", WGET, 0o755)
        programs = _programs(tar, version)
        libraries = _standard_library(tar, version)
        for library in sorted(_needed([*programs, *libraries, *_of_packages()])):
            tar.add(library.resolve(), str(library).lstrip("/"))
        _packages(tar, site)


def _programs(tar: tarfile.TarFile, version: str) -> list[Path]:
    """A shell and Python, with pip and Ray as programs; Ray wants `bash` and `sleep` too."""
    shell, python = Path("/bin/sh").resolve(), Path(sys.executable).resolve()
    others = [Path("/bin", name).resolve() for name in ("bash", "sleep")]
    tar.add(shell, "bin/sh")
    for program in others:
        tar.add(program, f"bin/{program.name}")
    for name in (version, "python3", "python"):
        tar.add(python, str(PREFIX / "bin" / name))
    pip = "#!/usr/local/bin/python\nimport sys\nfrom pip._internal.cli.main import main\nsys.exit(main())\n"
    _text(tar, str(PREFIX / "bin" / "pip"), pip, 0o755)
    ray = "#!/usr/local/bin/python\nfrom ray.scripts.scripts import main\nmain()\n"
    _text(tar, str(PREFIX / "bin" / "ray"), ray, 0o755)
    return [shell, *others, python]


def _standard_library(tar: tarfile.TarFile, version: str) -> list[Path]:
    root = Path(sysconfig.get_path("stdlib"))

    def wanted(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        name = Path(entry.name).name
        return None if name in LEFT_OUT or name.startswith("config-") else entry

    tar.add(root, str(PREFIX / "lib" / version), filter=wanted)
    return sorted((root / "lib-dynload").glob("*.so"))


def _packages(tar: tarfile.TarFile, site: Path) -> None:
    """pip itself, and of all others but ElasticDL that they are there."""
    packages = Path(sysconfig.get_path("purelib"))
    tar.add(packages / "pip", str(site / "pip"), filter=_without_caches)
    for about in sorted(packages.glob("*.dist-info")):
        if not about.name.startswith("elasticdl-"):
            tar.add(about / "METADATA", str(site / about.name / "METADATA"))
    _text(tar, str(site / "mounted.pth"), f"{PACKAGES}\n")


def _without_caches(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if Path(entry.name).name == "__pycache__" else entry


def _of_packages() -> list[Path]:
    """What brings the libraries of the system that packages count on."""
    packages = Path(sysconfig.get_path("purelib"))
    return [*packages.glob("cramjam/*.so"), *packages.glob("tensorflow/lib*.so.2")]


def _needed(files: list[Path]) -> set[Path]:
    """The libraries outside of the packages that programs are linked with."""
    ldd = shutil.which("ldd") or "ldd"
    said = subprocess.run([ldd, *map(str, files)], capture_output=True, text=True).stdout
    found = {Path(name) for name in re.findall(r"(?:=> |^\s+)(/\S+) \(0x", said, re.MULTILINE)}
    return {path for path in found if "site-packages" not in path.parts}


def _directory(tar: tarfile.TarFile, name: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
    tar.addfile(entry)


def _text(tar: tarfile.TarFile, name: str, text: str, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(text.encode()), mode
    tar.addfile(entry, io.BytesIO(text.encode()))
