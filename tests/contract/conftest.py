"""A zoo to write files into."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

WriteZoo = Callable[..., Path]


@pytest.fixture
def write_zoo(tmp_path: Path) -> WriteZoo:
    """`write_zoo({"a/b.py": text})` writes the files below a directory and returns it."""

    def write(files: dict[str, str], into: str = "zoo") -> Path:
        for name, text in files.items():
            path = tmp_path / into / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        return tmp_path / into

    return write
