"""Every block of every page, in order: a page that is followed works."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from elasticdl.experiments import stages
from elasticdl.runtime.elastic.cluster import ray_cluster
from elasticdl.runtime.jobs import on_kubernetes
from elasticdl.runtime.kubernetes import image
from elasticdl.runtime.kubernetes.follow import follow
from processes import ForkedSender

from .blocks import ROOT, blocks_of, pages
from .cluster import cluster, connected
from .reader import Reader

WITH_WORKERS = ("docs/guides/elastic.md", "docs/guides/experiments.md", "docs/guides/sql.md")
"""Readers who have a Ray already. Who follows the README starts one."""

WITH_A_BUCKET = (
    "docs/guides/experiments.md",
    "docs/guides/kubernetes.md",
    "docs/guides/storage.md",
)
WITH_A_CLUSTER = ("README.md", "docs/guides/kubernetes.md")

WITH_A_DASHBOARD = ("README.md", "docs/guides/dashboard.md")

PAGES = [page.relative_to(ROOT).as_posix() for page in pages()]


@pytest.fixture(scope="module")
def one_ray() -> Iterator[None]:
    with ray_cluster(None, num_cpus=4):
        yield


@pytest.fixture
def one_cluster(
    name: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """A kubeconfig that leads to a cluster, and an engine that builds images for it."""
    monkeypatch.setattr(image, "connected", connected)
    monkeypatch.setattr(on_kubernetes, "POLL_S", 0.1)
    monkeypatch.setitem(follow.__kwdefaults__ or {}, "poll_s", 0.1)
    with cluster(tmp_path_factory.mktemp("cluster"), works=name != "README.md") as kubeconfig:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        yield


@pytest.fixture
def own_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a page puts into sys.path, and imports from there, is not for other tests."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    for name, module in [*sys.modules.items()]:
        if str(getattr(module, "__file__", None)).startswith(f"{tmp_path}/"):
            del sys.modules[name]


@pytest.mark.usefixtures("tensorflow", "own_imports")
@pytest.mark.parametrize("name", PAGES)
def test_page_works_when_it_is_followed(
    name: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name != "README.md":
        monkeypatch.setattr(stages, "MlflowSender", ForkedSender)
    if name in WITH_A_BUCKET:
        request.getfixturevalue("bucket")
    if name in WITH_A_CLUSTER:
        request.getfixturevalue("one_cluster")
    if name in WITH_WORKERS:
        request.getfixturevalue("one_ray")
    if name in WITH_A_DASHBOARD:
        monkeypatch.delenv("ELASTICDL_DASHBOARD")
    if name == "docs/guides/mlflow.md":  # MLflow's own, of SQLAlchemy
        warnings.filterwarnings("ignore", message=".*noload.*")
    # Pages that use the models which come with us say to start from the repository's root.
    for directory in ("model_zoo", "deploy", ".vscode"):
        (tmp_path / directory).symlink_to(ROOT / directory)
    reader = Reader()
    for block in blocks_of(ROOT / name):
        reader.follow(block)


@pytest.mark.parametrize(
    "name", [*PAGES, "CHANGELOG.md", "deploy/README.md", "model_zoo/README.md"]
)
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
