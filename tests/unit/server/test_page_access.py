"""Whether everybody can use the server's page: by keyboard, on a phone, in light and dark, without motion."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from unit.server.browser import (
    FAINT,
    FOCUSABLE,
    FOCUSED,
    UNNAMED,
    UNSOUND,
    go,
    is_painted,
    opened,
    overflow,
    publish,
    running_browser,
    seeded_server,
    wait_until,
)

pytestmark = pytest.mark.processes

VIEWS = ["live", "write", "subscriptions", "explain", "publish", "plan"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with seeded_server(tmp_path_factory.mktemp("page")) as client:
        yield client


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as found:
        yield found


@pytest.fixture
def page(browser: Browser, server: httpx.Client) -> Iterator[Page]:
    with opened(browser, server) as found:
        yield found


@pytest.mark.parametrize("view", VIEWS)
def test_everything_is_reached_by_keyboard(page: Page, server: httpx.Client, view: str) -> None:
    publish(server, {"category": "Toy", "price": 1})
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "skip"
    link = page.locator(f'nav a[href="#{view}"]')
    for _ in range(12):
        page.keyboard.press("Tab")
        if link.evaluate("(each) => each === document.activeElement"):
            break
    page.keyboard.press("Enter")
    expect(page.locator(f"#view-{view}")).to_be_visible()
    expect(link).to_have_attribute("aria-current", "page")
    if view != "live":
        assert page.evaluate("document.activeElement.id") == f"title-{view}"
    if view == "live":
        expect(page.locator("#events details").first).to_be_visible()
        page.locator("#pause").press("Enter")
    if view == "subscriptions":
        expect(page.locator("#list > li").first).to_be_visible()
    if view == "plan":
        expect(page.locator("#plan .tiles")).to_be_visible()

    assert page.evaluate(UNNAMED) == []
    wanted = page.evaluate(FOCUSABLE)
    page.evaluate("document.activeElement.blur()")
    page.locator("#skip").focus()
    reached, unmarked = {"0"}, []
    for _ in range(2 * len(wanted)):
        page.keyboard.press("Tab")
        at = page.evaluate(FOCUSED)
        reached.add(at["place"])
        if at["place"] is not None and not at["marked"]:
            unmarked.append(at["what"])
    assert [name for place, name in enumerate(wanted) if str(place) not in reached] == []
    assert unmarked == []


def test_the_skip_link_leads_to_the_content(page: Page) -> None:
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "title-live"
    assert page.evaluate("location.hash") == ""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
def test_it_fits_and_can_be_read(browser: Browser, server: httpx.Client, width: int, scheme: str) -> None:
    wide = "unbroken" * 20
    id = f"{wide}-{width}-{scheme}"
    assert server.post("/subscriptions", json={"id": id, "where": f"{wide} = 1 OR price = 1"}).status_code == 201
    size = {"width": width, "height": 740}
    with opened(browser, server, expected=UNSOUND, viewport=size, color_scheme=scheme) as page:
        publish(server, {"price": 1, wide: wide})
        expect(page.locator("#events details").first).to_contain_text("unbroken")
        page.locator("#events summary").first.click()
        assert (overflow(page), page.evaluate(FAINT)) == (0, [])
        go(page, "write")
        page.locator("#where").fill(f"{wide} < AND 5")
        expect(page.locator("#where-check .excerpt")).to_be_visible()
        assert (overflow(page), page.evaluate(FAINT)) == (0, [])
        page.locator("#where").fill("price = 1")
        expect(page.locator("#backtest details").first).to_be_visible()
        page.get_by_role("button", name="Subscribe").click()
        expect(page.locator("#ticket .card")).to_be_visible()
        assert (overflow(page), page.evaluate(FAINT)) == (0, [])
        page.get_by_role("button", name="Watch its notifications").click()
        expect(page.locator("#list > li").first).to_be_visible()
        page.locator("#list summary").first.click()
        assert (overflow(page), page.evaluate(FAINT)) == (0, [])
        go(page, "explain")
        page.locator("#explain-where").fill(f"price < 0 OR {wide} = 'x'")
        page.locator("#explain-event").fill(json.dumps({"price": 1, wide: wide}))
        page.get_by_role("button", name="Explain", exact=True).click()
        expect(page.locator(".tree")).to_be_visible()
        assert (overflow(page), page.evaluate(FAINT)) == (0, [])
        for view in ("publish", "plan"):
            go(page, view)
            assert (overflow(page), page.evaluate(FAINT)) == (0, [])
        expect(page.locator("#plan .tiles")).to_be_visible()
        assert (overflow(page), page.evaluate(FAINT)) == (0, [])


def test_schemes_differ_and_charts_follow(page: Page) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    expect(page.locator("#chart-events canvas")).to_be_visible()
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        wait_until(page, partial(is_painted, page, "#chart-events canvas", "--soft"))  # the labels
        assert (page.evaluate(ground) == light) == (scheme == "light")


def test_nothing_moves_for_those_who_ask_for_that(browser: Browser, server: httpx.Client) -> None:
    moving = """() => [...document.querySelectorAll('*')].filter((each) => {
      const style = getComputedStyle(each);
      return parseFloat(style.transitionDuration) > 0 || style.animationName !== 'none';
    }).length"""
    with opened(browser, server, reduced_motion="reduce") as page:
        assert page.evaluate(moving) == 0
    with opened(browser, server, reduced_motion="no-preference") as page:
        assert page.evaluate(moving) > 0
