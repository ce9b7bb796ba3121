"""A base image without the internet: this machine's Python, and of its packages what pip reads of them.

The packages themselves, gigabytes, are not in it. pip sees that they are installed and does nothing. A
container that runs mounts this machine's at `PACKAGES`, where Python looks for them. What Python has compiled is
in it: each of the many processes of a container would do it again.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from pathlib import Path

PACKAGES = "/opt/packages"
PREFIX = Path("usr/local")
LEFT_OUT = {"ensurepip", "idlelib", "lib2to3", "pydoc_data", "site-packages", "dist-packages"}
LEFT_OUT |= {"test", "tests", "tkinter", "turtledemo"}
NOT_LOADED = re.compile(r"(_tkinter|_test|_ctypes_test|_xx|xx).*\.so|config-.*|.*\.opt-\d\.pyc")
"""Of the standard library; Tk would bring the libraries of a screen."""

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
        needed = sorted(_needed([*programs, *libraries, *_of_packages()]))
        with tempfile.TemporaryDirectory() as directory:
            for library, small in _stripped(needed, Path(directory)):
                tar.add(small, str(library).lstrip("/"))
            for library, small in _stripped(libraries, Path(directory)):
                there = PREFIX / "lib" / version / "lib-dynload" / library.name
                tar.add(small, str(there))
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
        return None if name in LEFT_OUT | {"lib-dynload"} or NOT_LOADED.fullmatch(name) else entry

    tar.add(root, str(PREFIX / "lib" / version), filter=wanted)
    return [
        path
        for path in sorted((root / "lib-dynload").glob("*.so"))
        if not NOT_LOADED.fullmatch(path.name)
    ]


def _stripped(libraries: list[Path], directory: Path) -> list[tuple[Path, Path]]:
    """Each with a copy that has no symbols of a debugger, which no test needs and every push would pack."""
    copies = [(path, shutil.copy(path.resolve(), directory / path.name)) for path in libraries]
    if strip := shutil.which("strip"):
        names = [str(copy) for _, copy in copies]
        subprocess.run([strip, "--strip-debug", *names], check=True, capture_output=True)
    return copies


def _packages(tar: tarfile.TarFile, site: Path) -> None:
    """pip itself, and of all others but ElasticDL that they are there."""
    packages = Path(sysconfig.get_path("purelib"))
    tar.add(packages / "pip", str(site / "pip"))
    for about in sorted(packages.glob("*.dist-info")):
        if not about.name.startswith("elasticdl-"):
            tar.add(about / "METADATA", str(site / about.name / "METADATA"))
    _text(tar, str(site / "mounted.pth"), f"{PACKAGES}\n")


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
