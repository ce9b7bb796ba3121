"""The page in a real browser: Debian's `chromium`, or another that goes by one of these names."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from PIL import Image

from .conftest import Written

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs chromium: apt-get install chromium")


def browse(page: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [
        str(BROWSER),
        "--headless",
        "--disable-gpu",
        "--hide-scrollbars",
        "--enable-logging=stderr",
    ]
    command += ["--disable-dev-shm-usage", f"--user-data-dir={page.parent / '.browser'}"]
    if os.geteuid() == 0:
        command.append("--no-sandbox")  # root has none
    return subprocess.run(
        [*command, *arguments, page.as_uri()], capture_output=True, check=True, timeout=120
    )


@pytest.fixture
def page(written: Written, tmp_path: Path) -> Path:
    return Path(shutil.copy(written.page, tmp_path / "report.html"))


@pytest.mark.parametrize(
    ("name", "width", "scheme", "paper"),
    [
        ("laptop", 1280, 1, (255, 255, 255)),
        ("dark", 1280, 0, (20, 20, 20)),
        ("phone", 400, 1, (255, 255, 255)),
    ],
)
def test_the_page_is_shown(
    page: Path, name: str, width: int, scheme: int, paper: tuple[int, ...]
) -> None:
    shot = page.with_name(f"{name}.png")
    done = browse(
        page,
        f"--window-size={width},3000",
        f"--blink-settings=preferredColorScheme={scheme}",
        f"--screenshot={shot}",
    )
    assert (
        b"CONSOLE" not in done.stderr
    )  # nothing was refused by the policy, nothing failed to load
    image = Image.open(io.BytesIO(shot.read_bytes())).convert("RGB")
    assert image.width == width
    assert image.getpixel((2, 2)) == paper
    colours = image.getcolors(maxcolors=1 << 24)
    assert colours is not None
    assert len(colours) > 500  # the pictures are there


def test_the_page_is_printed(page: Path) -> None:
    pdf = page.with_name("report.pdf")
    browse(page, f"--print-to-pdf={pdf}")
    assert pdf.read_bytes().startswith(b"%PDF")
