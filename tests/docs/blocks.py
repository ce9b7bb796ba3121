"""Pages as lists of fenced blocks, with what the page says about each to the test.

A comment on the line before a block, which readers do not see, may say:

    <!-- fails: 2 -->           the block's last command ends with this exit code
    <!-- interrupted: WORD -->  Ctrl-C is pressed as soon as the command prints WORD
    <!-- typed: A; B -->        these lines are typed to the command
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"(?:<!-- (\w+): (.+?) -->\n)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# file: (\S+)\n")


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: str
    line: int
    language: str
    text: str
    hint: str = ""
    value: str = ""

    @property
    def file(self) -> str | None:
        """The file that the block is, when its first line is a comment that says so."""
        found = _FILE.match(self.text)
        return found[1] if found else None

    def __str__(self) -> str:
        return f"{self.page}, line {self.line}"


def pages() -> list[Path]:
    """Every page whose blocks are run. Those of model_zoo/README.md are run by test_model_zoo.py."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    name = page.relative_to(ROOT).as_posix()
    return [
        Block(
            page=name,
            line=text.count("\n", 0, found.start(3)) + 1,
            language=found[3],
            text=found[4],
            hint=found[1] or "",
            value=found[2] or "",
        )
        for found in _FENCE.finditer(text)
    ]
