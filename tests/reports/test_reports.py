"""All reports of a run: the files, and the page as a parser reads it."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
from upath import UPath

from elasticdl.errors import MissingPackage
from elasticdl.reports import PointTable, Section, warm_up, write_reports
from elasticdl.reports.history import curves_of, duration_of, epochs_of
from elasticdl.reports.page import Page, render
from elasticdl.reports.parts import section_parts

from .conftest import EVIL, Written, events

VOID = {"meta", "img", "br", "hr", "link", "input"}


class Reader(HTMLParser):
    """Elements, their attributes and texts; refuses what is not closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def page(written: Written) -> Reader:
    return Reader(written.page.read_text(encoding="utf-8"))


def test_the_files_of_a_run(written: Written) -> None:
    run, evaluated = (
        written.root / "runs" / "base line",
        written.root / "eval_reports/digits/base line",
    )
    assert sorted(path.name for path in run.iterdir()) == [
        "plots",
        "report.html",
        "validation_report.csv",
        "validation_report_summary.csv",
        "validation_report_worst_cases.csv",
    ]
    assert len(list(evaluated.iterdir())) == 3
    assert (evaluated / "eval_report.csv").is_file()
    reported = [
        *written.reports.curves,
        *written.reports.files("validation"),
        *written.reports.files("test"),
    ]
    assert len(reported) == len(set(reported)) == 2 + 2 * (3 + 4)
    assert all(path.is_file() for path in reported)
    plots = [path for path in reported if path.suffix == ".png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in plots)
    assert {path.name for path in plots} == {path.name for path in (run / "plots").iterdir()}
    assert all(re.fullmatch(r"[a-z0-9_]+\.png", path.name) for path in plots)


def test_names_are_text_and_never_markup(page: Reader) -> None:
    assert page.all("script") == []
    assert (
        page.texts.count(EVIL) >= 5
    )  # functions, a data id, a class, a value of the configuration


def test_the_page_needs_nothing_but_itself(page: Reader) -> None:
    policy = next(
        meta["content"]
        for meta in page.all("meta")
        if meta.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    assert all(str(image["src"]).startswith("data:image/png;base64,") for image in page.all("img"))
    assert not [attributes for _, attributes in page.elements if "style" in attributes]
    assert page.all("link") == []
    assert "url(" not in "".join(page.texts)


def test_headings_are_in_order_and_pictures_have_words(page: Reader) -> None:
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert len(page.all("img")) == 2 + 2 * 4
    assert all(image["alt"] for image in page.all("img"))
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_links_lead_to_the_tables(page: Reader, written: Written) -> None:
    links = [str(link["href"]) for link in page.all("a")]
    inside = {link[1:] for link in links if link.startswith("#")}
    assert inside <= {attributes.get("id") for _, attributes in page.elements}
    files = {
        (written.page.parent / unquote(link)).resolve()
        for link in links
        if not link.startswith("#")
    }
    tables = written.reports.tables
    assert files == {Path(str(path)).resolve() for name in tables for path in tables[name]}


def test_what_the_page_tells(page: Reader, written: Written) -> None:
    texts = page.texts
    for fact in (
        "digits / base line",
        "sequential",
        "epoch 4, val_loss 0.5500",
        "20.0 s",
        "120 data points.",
    ):
        assert fact in texts
    for key, value in (
        ("epochs", "4"),
        ("model_builder.n_filters", "512"),
        ("model_builder.opts", "{}"),
    ):
        assert texts[texts.index(key) + 1] == value
    assert "By sparse categorical ce, the largest first: by its name, less is better." in texts
    # A function that is named as a metric is stands beside it.
    mean = written.sections[0].numbers()["accuracy (mean)"]
    assert texts[texts.index("accuracy (mean)") + 2] == f"{mean:#.4g}"
    assert texts[texts.index("loss") + 1 :][:3] == ["model", "0.2500", "0.2500"]


def test_many_functions_are_told_but_not_all_drawn(tmp_path: Path) -> None:
    table = PointTable({f"f{i}": lambda y_true, y_pred: y_pred for i in range(15)})
    table.add(["a", "a"], np.zeros(2), np.array([1.5, np.inf]))
    run = UPath(tmp_path / "run")
    reports = write_reports(
        run, run, project="p", run="r", config={}, events=[], sections=[Section("test", table)]
    )
    assert len(reports.plots["test"]) == 12
    texts = Reader((tmp_path / "run/report.html").read_text(encoding="utf-8")).texts
    assert "12 of 15 are shown." in texts
    assert "1 of them have an id that was there before, for example: a." in texts
    assert (
        "By f0, the largest first: less was taken to be better, which the name does not tell. "
        "Give the function an attribute higher_is_better to say it." in texts
    )


def test_the_page_says_who_told_what_is_worst() -> None:
    table = PointTable({"volume": Volume()})
    table.add(["a", "b"], np.zeros(2), np.array([1.5, np.nan]))
    parts = section_parts(Section("test", table), [], None)
    assert parts["worst_remark"] == (
        "By volume, the smallest first: its function says that more is better. "
        "Before them are those without a value."
    )
    assert [row[0] for row in parts["worst"]] == ["b", "a"]


class Volume:
    higher_is_better = True

    def __call__(self, y_true: float, y_pred: float) -> float:
        return y_pred


def test_only_the_metrics_of_the_model(tmp_path: Path) -> None:
    sections = [Section("validation", metrics={"loss": None, "auc": float("inf")})]
    reports = write_reports(
        UPath("memory://reports/run"),
        UPath(tmp_path),
        project="p",
        run="r",
        config={},
        events=[],
        sections=sections,
    )
    assert reports.page is not None
    texts = Reader(reports.page.read_text(encoding="utf-8")).texts
    assert texts[texts.index("loss") + 2] == "\N{EN DASH}"
    assert texts[texts.index("auc") + 2] == "\N{INFINITY}"
    assert reports.tables == {}


def test_a_page_of_nothing() -> None:
    assert "Nothing was evaluated." in Reader(render(Page("p", "r"))).texts


def test_epochs_that_were_done_again_count_once() -> None:
    again = {"time": 130.0, "event": "epoch", "epoch": 2, "step": 16, "loss": 9.0}
    told = [*events(), {"time": 129.0, "event": "run_started"}, again]
    assert [event["epoch"] for event in epochs_of(told)] == [0, 1, 2]
    curves = curves_of(epochs_of(told))
    assert [curve.name for curve in curves] == ["loss", EVIL]
    assert curves[0].training[-1] == 9.0
    assert np.isnan(curves[0].validation[-1])
    assert duration_of(told) == 20.0 + 1.0
    assert duration_of([]) is None


def test_a_style_of_the_users_changes_nothing_and_stays(written: Written, tmp_path: Path) -> None:
    import matplotlib

    with matplotlib.rc_context({"text.usetex": True, "figure.facecolor": "black"}):
        run = UPath(tmp_path / "run")
        again = write_reports(
            run, run, project="p", run="r", config={}, events=[], sections=written.sections
        )
        assert matplotlib.rcParams["text.usetex"] is True
    first = [path.read_bytes() for path in written.reports.plots["validation"]]
    assert [path.read_bytes() for path in again.plots["validation"]] == first


def test_the_tables_are_there_when_a_package_is_missing(tmp_path: Path) -> None:
    program = f"""
import sys
sys.modules[sys.argv[1]] = None  # as if it were not installed
import numpy as np
from upath import UPath
from elasticdl.reports import PointTable, Section, warm_up, write_reports
warm_up().join()
table = PointTable({{"loss": lambda y_true, y_pred: y_pred}})
table.add(["a"], np.zeros(1), np.ones(1))
run = UPath({str(tmp_path)!r})
arguments = dict(project="p", run="r", config={{}}, events=[], sections=[Section("validation", table)])
print(write_reports(run, run, warn=print, **arguments).page, (run / "validation_report.csv").exists())
write_reports(run, run, **arguments)
"""
    for package in ("matplotlib", "jinja2"):
        done = subprocess.run(
            [sys.executable, "-c", program, package], capture_output=True, text=True
        )
        assert (
            "which is not installed. Install it with: pip install 'elasticdl[abstractions]'"
            in done.stdout
        )
        assert "None True" in done.stdout
        assert MissingPackage.__name__ in done.stderr


def test_importing_the_reports_imports_nothing_heavy() -> None:
    heavy = "{'matplotlib', 'jinja2', 'tensorflow', 'pandas'}"
    program = f"import sys, elasticdl.reports; print({heavy} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"
    warm_up().join()
