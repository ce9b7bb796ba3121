"""The page in a real browser: what one sees of runs that ended and of one that goes on."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from shown_runs import (
    HOSTILE,
    ShownRuns,
    append,
    ended,
    formed,
    joined,
    lost,
    step_event,
    train_events,
    write,
)
from upath import UPath

pytest.importorskip("playwright", reason="needs playwright: pip install playwright")
pytest.importorskip("fastapi", reason="needs pip install 'elasticdl[dashboard]'")
CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: apt install chromium")

from playwright.sync_api import (  # noqa: E402
    Browser,
    ConsoleMessage,
    Page,
    Route,
    expect,
    sync_playwright,
)

from elasticdl.artifacts.hold import Hold  # noqa: E402
from elasticdl.runtime.dashboard.serve import Dashboard, start  # noqa: E402

AXE = Path(__file__).resolve().parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
expect.set_options(timeout=15_000)  # a machine may have much else to do
PHONE = {"width": 400, "height": 800}
LAPTOP = {"width": 1280, "height": 800}
TABS = ["Overview", "Events", "Logs", "Configuration", "Files"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ShownRuns]:
    shown = ShownRuns(tmp_path_factory.mktemp("runs"))
    yield shown
    shown.close()


@pytest.fixture(scope="module")
def dashboard(runs: ShownRuns) -> Iterator[Dashboard]:
    with start([str(runs.root)]) as served:
        yield served


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Browser, dashboard: Dashboard) -> Iterator[Page]:
    """A page at the list of runs. It has written no error, and asked nobody but its server."""
    context = browser.new_context(viewport=LAPTOP, base_url=dashboard.url, color_scheme="light")
    context.set_default_timeout(15_000)
    opened = context.new_page()
    told: list[str] = []
    opened.on("console", lambda said: told.append(said.text) if is_error(said) else None)
    opened.on("pageerror", lambda error: told.append(str(error)))
    opened.on(
        "request",
        lambda asked: None if asked.url.startswith(dashboard.url) else told.append(asked.url),
    )
    opened.goto("/")
    expect(opened.get_by_role("table", name="Runs")).to_be_visible()
    yield opened
    context.close()
    assert not told


def is_error(said: ConsoleMessage) -> bool:
    """Not that a run is gone or the server away, which a test may want: the page says so itself."""
    is_of_run = (
        said.text.startswith("Failed to load resource") and "/api/runs" in said.location["url"]
    )
    return said.type == "error" and not is_of_run


def open_run(page: Page, name: str) -> None:
    page.get_by_role("link", name=name, exact=True).click()
    expect(page.get_by_role("heading", level=1, name=name)).to_be_visible()


def compare_two(page: Page) -> None:
    page.get_by_label("Compare digits-wide").check()
    page.get_by_label("Compare digits-narrow").check()
    page.get_by_role("button", name="Compare 2").click()
    expect(page.locator(".chart canvas")).to_be_visible()


def names(page: Page) -> list[str]:
    return page.locator("table.runs tbody th a").all_inner_texts()


def wait_for_theme(page: Page, theme: str) -> None:
    expect(page.locator("html")).to_have_attribute("data-theme", theme)


def is_narrow(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def test_runs_are_listed_with_how_they_go(page: Page) -> None:
    assert set(names(page)) == {"digits-wide", "digits-narrow", "digits-failed", "elastic", HOSTILE}
    row = page.get_by_role("row", name=re.compile("elastic"))
    expect(row).to_contain_text("running")
    expect(row).to_contain_text("of 2:4")
    assert (
        page.get_by_role("progressbar", name="Progress of digits-wide").get_attribute(
            "aria-valuenow"
        )
        == "100"
    )


def test_runs_are_filtered_by_text_and_status(page: Page) -> None:
    page.keyboard.press("/")
    page.keyboard.type("digits-wi")
    expect(page.locator("table.runs tbody tr")).to_have_count(1)
    open_run(page, "digits-wide")
    page.go_back()
    expect(page.get_by_role("searchbox")).to_have_value("digits-wi")
    page.get_by_role("searchbox").fill("")
    page.get_by_label("Status").select_option("failed")
    expect(page.locator("table.runs tbody tr")).to_have_count(1)
    assert names(page) == ["digits-failed"]


def test_runs_are_sorted_by_a_heading(page: Page) -> None:
    page.get_by_role("button", name="Run", exact=True).click()
    up = names(page)
    page.get_by_role("button", name="Run", exact=True).press("Enter")
    assert names(page) == up[::-1]
    assert page.get_by_role("columnheader", name="Run").get_attribute("aria-sort") == "descending"


def test_numbers_change_while_a_run_goes_on(page: Page, runs: ShownRuns) -> None:
    open_run(page, "elastic")
    loss = page.locator(".chart", has_text="Loss").locator(".legend b").first
    expect(loss).to_have_text(re.compile(r"\d"))
    before = loss.inner_text()
    at = runs.go_on(20)
    expect(page.locator(".facts dd").first).to_contain_text(f"{at}")
    expect(loss).not_to_have_text(before)


def test_lost_worker_is_on_the_timeline(page: Page, runs: ShownRuns) -> None:
    open_run(page, "elastic")
    row = page.locator(
        ".timeline tr", has=page.get_by_role("rowheader", name=re.compile("worker-2"))
    )
    expect(row.locator(".span")).to_have_class(re.compile("here"))
    now = time.time()
    append(runs.live, lost(now, 2), formed(now + 1, [0], runs.step, 2.5))
    expect(row.locator(".span")).to_have_class(re.compile("lost"))
    expect(row.locator(".span")).to_contain_text("its process was killed or crashed")
    expect(page.locator(".changes")).to_contain_text("after a stall of 2.5 s")


def test_two_runs_are_compared(page: Page) -> None:
    compare_two(page)
    expect(page.locator(".chart .legend li")).to_have_count(2)
    name = page.locator(".legend").get_by_role("button", name="digits-wide")
    name.click()
    expect(name).to_have_attribute("aria-pressed", "false")
    settings = page.get_by_role("group", name="Settings of the runs")
    expect(settings.get_by_role("row", name=re.compile("learning_rate"))).to_contain_text("0.001")
    expect(settings).not_to_contain_text("model_def")
    page.get_by_label("Only differences").uncheck()
    expect(settings).to_contain_text("model_def")
    assert page.locator(".differs", has_text="minibatch_size").count() == 1
    metrics = page.get_by_role("group", name="Metrics of the runs")
    expect(metrics.locator(".best").first).to_contain_text("best")


def test_command_is_copied(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    open_run(page, "digits-wide")
    page.get_by_role("tab", name="Files").click()
    command = page.locator(".command").first
    command.get_by_role("button").click()
    expect(command.get_by_role("button")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == command.locator("code").inner_text()


def test_curves_are_zoomed_by_dragging_and_shown_whole_again(page: Page) -> None:
    open_run(page, "digits-wide")
    plot = page.locator(".u-over").first
    box = plot.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 60, box["y"] + 50)
    with page.expect_request(lambda asked: "start=" in asked.url and "end=" in asked.url):
        page.mouse.down()
        page.mouse.move(box["x"] + 200, box["y"] + 60, steps=3)
        page.mouse.up()
    expect(page.get_by_role("button", name="Show all")).to_be_visible()
    plot.dblclick()
    expect(page.get_by_role("button", name="Show all")).to_have_count(0)


def test_curves_are_read_by_keyboard(page: Page) -> None:
    open_run(page, "digits-wide")
    chart = page.get_by_role("group", name=re.compile("^Loss"))
    assert "at step 300" in (chart.get_attribute("aria-label") or "")
    chart.focus()
    page.keyboard.press("Home")
    expect(page.locator(".chart .at").first).to_have_text("step 5")
    page.keyboard.press("+")
    expect(page.get_by_role("button", name="Show all")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Show all")).to_have_count(0)


def test_look_of_the_curves_is_remembered(page: Page) -> None:
    open_run(page, "digits-wide")
    page.get_by_label("Log scale").check()
    page.get_by_text("By time").click()
    page.get_by_label("Smoothing").fill("0.6")
    page.reload()
    expect(page.get_by_label("Log scale")).to_be_checked()
    expect(page.get_by_label("By time")).to_be_checked()
    expect(page.locator(".slider output")).to_have_text("0.60")


def test_events_are_searched_and_told_by_level(page: Page) -> None:
    open_run(page, "digits-failed")
    expect(page.get_by_role("status").filter(has_text="cannot be")).to_be_visible()
    page.get_by_role("tab", name="Events").click()
    page.get_by_label("Level").select_option("warning")
    expect(page.locator(".events li")).to_have_count(2)
    expect(page.locator(".events")).to_contain_text("A <b>checkpoint</b> is broken.")
    page.get_by_role("searchbox").fill("became inf")
    expect(page.locator(".events li")).to_have_count(1)


def test_logs_are_shown_as_text(page: Page) -> None:
    open_run(page, "elastic")
    page.get_by_role("tab", name="Logs").click()
    expect(page.get_by_role("group", name="Log worker-0")).to_contain_text(
        "<script>alert(1)</script>"
    )
    page.get_by_role("searchbox").fill("step 17:")
    expect(page.locator(".log > div")).to_have_count(1)


def test_hostile_name_is_text(page: Page) -> None:
    open_run(page, HOSTILE)
    assert page.locator("main img").count() == 0
    page.get_by_role("tab", name="Configuration").click()
    expect(page.locator("table.config")).to_contain_text(HOSTILE)
    assert "hacked" not in page.evaluate("document.title").replace(HOSTILE, "")


def test_both_themes_and_the_choice_is_remembered(page: Page) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.emulate_media(color_scheme="dark")
    wait_for_theme(page, "dark")
    assert page.evaluate(ground) != light
    page.get_by_role("button", name="Theme: system").click()
    assert page.evaluate(ground) == light
    page.reload()
    expect(page.get_by_role("button", name="Theme: light")).to_be_visible()
    assert page.evaluate(ground) == light


def test_phone_needs_no_sideways_scrolling(page: Page) -> None:
    page.set_viewport_size(PHONE)
    assert is_narrow(page)
    open_run(page, "elastic")
    for tab in TABS:
        page.get_by_role("tab", name=tab).click()
        expect(page.get_by_role("tabpanel", name=tab)).to_be_visible()
        assert is_narrow(page), tab
    page.go_back()
    compare_two(page)
    assert is_narrow(page)


def answer_with(page: Page, path: str | re.Pattern[str], change: Callable[[Any], None]) -> None:
    """The server's own answer at this path, but for what is changed in it."""

    def answer(route: Route) -> None:
        headers = {**route.request.headers}
        headers.pop("if-none-match", None)
        told = route.fetch(headers=headers).json()
        change(told)
        route.fulfill(json=told)

    page.route(re.compile(path), answer)


def test_run_with_impossible_times_is_listed_with_the_others(page: Page) -> None:
    def change(told: Any) -> None:
        for run in told["runs"]:
            if run["name"] == "digits-wide":
                run.update(started=1e308, ended=1e308, duration_s=1e308)

    answer_with(page, "/api/runs$", change)
    page.reload()
    row = page.get_by_role("row", name=re.compile("digits-wide"))
    expect(row.locator(".when")).to_have_text("\N{EN DASH}")
    assert len(names(page)) == 5


def test_run_that_cannot_be_drawn_leaves_the_others(page: Page) -> None:
    def change(told: Any) -> None:
        for run in told["runs"]:
            if run["name"] == "digits-wide":
                run["workers"] = None

    answer_with(page, "/api/runs$", change)
    page.reload()
    row = page.get_by_role("row", name=re.compile("digits-wide"))
    expect(row).to_contain_text("cannot be shown")
    expect(page.get_by_role("row", name=re.compile("digits-narrow"))).to_contain_text("completed")
    assert len(names(page)) == 5
    page.unroute_all()
    expect(row).to_contain_text("completed")  # when it can be drawn again, it is


def test_part_of_a_run_that_cannot_be_drawn_leaves_the_others(page: Page) -> None:
    answer_with(page, "/workers$", lambda told: told.update(groups=None))
    open_run(page, "elastic")
    expect(page.locator(".notice", has_text="The workers cannot be shown")).to_be_visible()
    expect(page.locator(".chart canvas").first).to_be_visible()


def test_compare_opens_with_the_loss_whoever_answers_first(page: Page) -> None:
    held: list[Route] = []
    page.route(series_of(page, "digits-narrow"), lambda route: held.append(route))
    answer_with(page, series_of(page, "digits-wide"), drop_the_loss)
    compare_two(page)
    assert held
    for route in held:
        route.continue_()
    expect(page.get_by_label("Curve", exact=True)).to_have_value("loss")


def series_of(page: Page, name: str) -> re.Pattern[str]:
    href = page.get_by_role("link", name=name, exact=True).get_attribute("href") or ""
    return re.compile(f"{href.replace('/run/', '/api/runs/')}/series")


def drop_the_loss(told: Any) -> None:
    told["series"] = [one for one in told["series"] if one["key"] != "loss"]


def test_compare_without_a_loss_opens_with_what_most_runs_have(page: Page) -> None:
    def change(told: Any) -> None:
        drop_the_loss(told)
        first = told["series"][0]
        own = f"own of {first['points'][0][1]}"  # the times of the runs differ
        told["series"].insert(0, {**first, "key": own, "label": own})

    answer_with(page, "/series", change)
    compare_two(page)
    expect(page.locator(".chart .legend li")).to_have_count(2)


def test_run_that_is_resumed_is_seen_soon(page: Page, runs: ShownRuns) -> None:
    first, *rest = ended(train_events(time.time() - 500, steps=30))
    run = write(runs.root / "resumed", [first, *rest])
    try:
        page.reload()
        open_run(page, "resumed")
        step = page.locator(".facts dd").first
        expect(step).to_contain_text("30")
        now = time.time()
        append(run, {**first, "time": now, "step": 30}, step_event(now + 1, 35, 2))
        expect(step).to_contain_text("35", timeout=8000)
    finally:
        shutil.rmtree(run)


LONG = "x" * 300


@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_long_words_make_no_page_wider(page: Page, runs: ShownRuns, size: Any) -> None:
    now = time.time()
    told = [
        *train_events(now - 400, steps=30)[:2],
        *({**event, "worker": LONG} for event in (joined(now - 390, 0), lost(now - 300, 0))),
        {**formed(now - 290, [], 5), "members": [LONG, "b"]},
        {**{"time": now - 200, "event": "evaluation", "step": 10}, "metrics": {LONG: 0.5}},
        {"time": now - 190, "event": "warning", "message": LONG},
    ]
    made = [
        write(runs.root / name, ended(told, "failed", error=LONG), **{LONG: name, "num_workers": 2})
        for name in ("a" * 200, "b" * 200)
    ]
    try:
        page.set_viewport_size(size)
        page.goto("/?filter=" + "a" * 200)
        expect(page.locator(".runs small[title]", has_text=LONG)).to_be_visible()
        assert is_narrow(page)
        open_run(page, "a" * 200)
        expect(page.locator(".timeline")).to_be_visible()
        expect(page.locator(".chart h3", has_text=LONG)).to_be_visible()
        for tab in TABS:
            page.get_by_role("tab", name=tab).click()
            expect(page.get_by_role("tabpanel", name=tab)).to_be_visible()
            assert is_narrow(page), tab
        page.goto("/")
        for run in made:
            page.get_by_label(f"Compare {run.name}").check()
        page.get_by_role("button", name="Compare 2").click()
        expect(page.locator(".chart canvas")).to_be_visible()
        page.get_by_label("Curve", exact=True).select_option(f"val_{LONG}")
        assert is_narrow(page)
        widest = "Math.max(...[...document.querySelectorAll('.compared')].map(t => t.scrollWidth))"
        assert page.evaluate(widest) < 1280
    finally:
        for run in made:
            shutil.rmtree(run)


def test_keyboard_alone_leads_to_a_run_and_its_tabs(page: Page) -> None:
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="To the content")).to_be_focused()
    page.keyboard.press("/")
    page.keyboard.type("digits-wide")
    expect(page.locator("table.runs tbody tr")).to_have_count(1)
    tab_to(page, "a", "digits-wide")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="digits-wide")).to_be_visible()
    tab_to(page, "button", "Overview")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Events")).to_be_focused()
    expect(page.locator(".events li").first).to_be_visible()
    ring = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(ring) != "none"


def tab_to(page: Page, tag: str, text: str) -> None:
    at = "() => [document.activeElement.localName, document.activeElement.textContent.trim()]"
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate(at) == [tag, text]:
            return
    raise AssertionError(f"The Tab key does not lead to {text}.")


def test_run_that_vanishes_is_said(page: Page, runs: ShownRuns) -> None:
    gone = write(runs.root / "soon-gone", train_events(time.time() - 10, steps=30))
    hold = Hold(UPath(gone))
    hold.take()
    page.reload()
    open_run(page, "soon-gone")
    shutil.rmtree(gone)
    hold.release()
    expect(page.get_by_role("status").filter(has_text="The run is gone")).to_be_visible()
    expect(page.locator(".facts")).to_be_visible()


def test_lost_connection_is_said_and_tried_again(page: Page) -> None:
    page.context.set_offline(True)
    expect(page.get_by_role("alert")).to_contain_text("does not answer")
    expect(page.get_by_role("row", name=re.compile("elastic"))).to_contain_text(
        "running when last heard"
    )
    page.context.set_offline(False)
    expect(page.get_by_role("alert")).to_be_empty()


def test_nothing_is_sent_again_that_has_not_changed(page: Page) -> None:
    open_run(page, "digits-wide")
    expect(page.locator(".chart canvas").first).to_be_visible()
    with page.expect_response(lambda answer: "/api/runs/" in answer.url and answer.status == 304):
        page.evaluate(
            "document.dispatchEvent(new Event('visibilitychange'))"
        )  # somebody looks again


def test_report_is_shown_in_place(page: Page) -> None:
    open_run(page, "digits-wide")
    page.get_by_role("tab", name="Report").click()
    report = page.frame_locator("iframe.report")
    expect(report.get_by_role("heading", name="Validation")).to_be_visible()
    assert page.locator("iframe.report").get_attribute("sandbox") == ""


@pytest.mark.skipif(not AXE.is_file(), reason="needs axe-core: cd web && npm ci")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_pass_the_rules_of_axe(page: Page, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    wait_for_theme(page, scheme)
    assert broken_rules(page) == []
    open_run(page, "elastic")
    expect(page.locator(".timeline")).to_be_visible()
    for tab in TABS:
        page.get_by_role("tab", name=tab).click()
        expect(page.get_by_role("tabpanel", name=tab)).to_be_visible()
        assert broken_rules(page) == [], tab
    page.goto("/")
    compare_two(page)
    assert broken_rules(page) == []


def broken_rules(page: Page) -> list[str]:
    # The content security policy lets no script in but the page's own; the browser's own door is open to tests.
    page.evaluate(AXE.read_text())
    found = page.evaluate(
        "axe.run().then(r => r.violations.map(v => v.id + ' ' + v.nodes.map(n => n.target).join()))"
    )
    return list(found)
