"""Every block of every page, in order: a page that is followed works."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from elasticdl.experiments import stages
from elasticdl.runtime.elastic.cluster import ray_cluster
from processes import ForkedSender

from .blocks import ROOT, blocks_of, pages
from .reader import Reader

WITH_WORKERS = ("docs/guides/elastic.md", "docs/guides/experiments.md", "docs/guides/sql.md")
"""Readers who have a Ray already. Who follows the README starts one."""

PAGES = [page.relative_to(ROOT).as_posix() for page in pages()]


@pytest.fixture(scope="module")
def one_ray() -> Iterator[None]:
    with ray_cluster(None, num_cpus=4):
        yield


@pytest.mark.usefixtures("tensorflow")
@pytest.mark.parametrize("name", PAGES)
def test_page_works_when_it_is_followed(
    name: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name != "README.md":
        monkeypatch.setattr(stages, "MlflowSender", ForkedSender)
    if name in ("docs/guides/storage.md", "docs/guides/experiments.md"):  # readers with a bucket
        request.getfixturevalue("bucket")
    if name in WITH_WORKERS:
        request.getfixturevalue("one_ray")
    if name == "docs/guides/mlflow.md":  # MLflow's own, of SQLAlchemy
        warnings.filterwarnings("ignore", message=".*noload.*")
    # Pages that use the models which come with us say to start from the repository's root.
    (tmp_path / "model_zoo").symlink_to(ROOT / "model_zoo")
    (tmp_path / ".vscode").symlink_to(ROOT / ".vscode")
    reader = Reader()
    for block in blocks_of(ROOT / name):
        reader.follow(block)


@pytest.mark.parametrize("name", [*PAGES, "CHANGELOG.md", "model_zoo/README.md"])
def test_links_of_a_page_lead_somewhere(name: str) -> None:
    page = ROOT / name
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"https?:", target):
            path, _, anchor = target.partition("#")
            linked = (page.parent / path).resolve() if path else page
            assert linked.exists(), f"{name} links to {target}, which does not exist"
            assert not anchor or anchor in _anchors(linked), f"{name}: no heading for {target}"


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}
