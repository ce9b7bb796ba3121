"""The page that is in the package: complete, from its own server only, and built of the sources beside it."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

STATIC = Path(str(files("elasticdl.runtime.dashboard") / "static"))
WEB = Path(__file__).resolve().parents[2] / "web"
LARGEST = 200_000


def test_page_names_its_files_by_what_is_in_them() -> None:
    html = (STATIC / "index.html").read_text()
    for name in ("theme.js", "app.js", "app.css"):
        digest = hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:10]
        assert f'"/static/{name}?v={digest}"' in html


def test_page_is_small() -> None:
    assert sum(file.stat().st_size for file in STATIC.iterdir()) < LARGEST


def test_page_loads_nothing_from_elsewhere() -> None:
    loaded = (STATIC / "index.html").read_text() + (STATIC / "app.css").read_text()
    assert not re.search(r"https?://|@import|url\(", loaded)


def test_page_has_no_inline_script_or_style() -> None:
    html = (STATIC / "index.html").read_text()
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|<script(?! src=)", html)


def test_page_carries_the_licenses_of_what_it_bundles() -> None:
    told = (STATIC / "LICENSES.txt").read_text()
    for name, version in json.loads((WEB / "package.json").read_text())["dependencies"].items():
        assert f"{name} {version}" in told


def test_lock_file_names_no_registry() -> None:
    assert "://" not in _without_funding()


def _without_funding() -> str:
    lock = json.loads((WEB / "package-lock.json").read_text())
    for package in lock["packages"].values():
        package.pop("funding", None)
        assert "resolved" not in package
    return json.dumps(lock)


@pytest.mark.skipif(
    shutil.which("node") is None or not (WEB / "node_modules" / "esbuild").is_dir(),
    reason="needs node and web/node_modules: cd web && npm ci",
)
def test_page_is_built_of_its_sources(tmp_path: Path) -> None:
    subprocess.run(["node", str(WEB / "build.mjs"), str(tmp_path)], check=True, timeout=60)
    built = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    stale = [name for name, data in built.items() if (STATIC / name).read_bytes() != data]
    assert not stale, f"{', '.join(stale)} differ from their sources in web/: run make web"
    assert set(built) == {file.name for file in STATIC.iterdir()}
