"""What `.vscode/launch.json` starts, started."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from elasticdl.cli.main import main

from .blocks import ROOT
from .reader import launched

TEXT = re.sub(r"^\s*//.*$", "", (ROOT / ".vscode" / "launch.json").read_text(), flags=re.MULTILINE)


@pytest.mark.usefixtures("tensorflow")
@pytest.mark.parametrize("number", range(len(json.loads(TEXT)["configurations"])))
def test_configuration_of_the_editor_trains(number: int, tmp_path: Path) -> None:
    (tmp_path / "model_zoo").symlink_to(ROOT / "model_zoo")
    python, _, module, *args = launched(json.loads(TEXT))[number]
    assert (python, module) == ("python", "elasticdl.python.elasticdl.client")
    assert "--debug" in args
    assert main([*args, "--max_step=1"]) == 0
