"""The server's page in a real browser, on a real server: what people do with it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from harken.server.credentials import KEY, hashed, new_credential
from harken.server.page import CONTENT_SECURITY_POLICY, page_files
from harken.store import ApiKey, open_store
from services.processes import free_port
from unit.server.browser import (
    UNSOUND,
    go,
    is_painted,
    opened,
    publish,
    running_browser,
    running_server,
    seeded_server,
    wait_until,
)

pytestmark = pytest.mark.processes


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


def test_files_come_as_they_are_with_the_policy(server: httpx.Client) -> None:
    for path, (content_type, content) in page_files().items():
        answer = server.get(path)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == content_type
        assert answer.content == content
        assert answer.headers["content-security-policy"] == CONTENT_SECURITY_POLICY


def test_the_live_view_draws_rates_and_lists_events(page: Page, server: httpx.Client) -> None:
    expect(page.locator("#chart-events canvas")).to_be_visible()
    for _ in range(30):
        publish(server, {"category": "Toy", "price": 25.5, "large": 9007199254740993})
        time.sleep(0.1)
    for name, colour in (("events", "--one"), ("matches", "--two")):
        wait_until(page, partial(is_painted, page, f"#chart-{name} canvas", colour))
        expect(page.locator(f"#{name}-rate")).not_to_have_text("–")
    expect(page.locator("#count-subscriptions")).to_have_text(re.compile(r"^\d+$"))

    page.locator("#events details").first.locator("summary").click()
    read = page.locator("#events details[open]")  # another may have come before it, just before the list was paused
    expect(read.locator("pre")).to_contain_text('"large": 9007199254740993')  # not rounded
    assert sorted(read.locator(".chip").all_inner_texts()) == [f"seen-{number}" for number in range(25, 30)]
    expect(page.locator("#pause")).to_have_attribute("aria-pressed", "true")  # who reads is not interrupted
    shown = page.locator("#events details").count()
    publish(server, {"category": "Lamp", "price": 1})
    expect(page.locator("#events-note")).to_have_text(re.compile("paused, .* more since"))
    assert page.locator("#events details").count() == shown
    page.get_by_role("button", name="Go on").click()
    expect(page.locator("#events details").first).to_contain_text("Lamp")


def test_without_vegas_scripts_the_rest_works(browser: Browser, server: httpx.Client) -> None:
    with opened(browser, server, expected=r"status of 404 .*/page/vega\.js$") as page:
        page.route("**/page/vega.js", lambda route: route.fulfill(status=404))
        page.reload()
        expect(page.locator("#chart-events")).to_contain_text("Charts need Vega's scripts")
        expect(page.locator("#state")).to_have_text("live")
        expect(page.locator("#events-rate")).not_to_have_text("–")


def test_from_a_text_to_a_notification(browser: Browser, server: httpx.Client) -> None:
    with opened(browser, server, expected=UNSOUND) as page:
        go(page, "write")
        page.locator("#where").fill("category = 'Toy' AND\nprice < AND 5")
        expect(page.locator("#where-check")).to_contain_text("Line 2, column 9")
        expect(page.locator("#where-check .excerpt")).to_have_text("price < AND 5\n        ^")
        expect(page.locator("#where-check .hint")).to_contain_text("a condition is missing before")
        expect(page.locator(".mirror mark").first).to_have_text("AND")
        expect(page.locator("#where")).to_have_attribute("aria-invalid", "true")
        page.get_by_role("button", name="Go there").click()
        assert page.evaluate("[document.activeElement.id, document.activeElement.selectionStart]") == ["where", 29]

        page.locator("#where").fill("category = 'Toy' AND price < 5")
        expect(page.locator("#where-check")).to_have_text("Sound.")
        expect(page.locator("#where")).not_to_have_attribute("aria-invalid", "true")
        expect(page.locator("#backtest")).to_contain_text(re.compile(r"Matched \d+ of the last [\d,]+ events"))
        expect(page.locator("#backtest details").first).to_contain_text("Toy")

        page.locator("#new-id").fill("mine, é")
        page.locator("#new-owner").fill("alice")
        page.get_by_role("button", name="Subscribe").click()
        expect(page.locator("#ticket h2")).to_have_text("Subscribed as mine, é")
        ticket = page.get_by_label("Ticket", exact=True).input_value()
        assert server.get("/subscriptions/mine%2C%20%C3%A9", headers={"Harken-Ticket": ticket}).status_code == 200

        page.get_by_role("button", name="Watch its notifications").click()
        expect(page.locator("#watching-state")).to_have_text("watching")
        go(page, "publish")
        page.locator("#publish-event").fill('{"category": "Toy", "price": 4.25}')
        page.get_by_role("button", name="Only try").click()
        expect(page.locator("#publish-result .chip.mine")).to_have_text("mine, é (yours)")
        page.get_by_role("button", name="Publish", exact=True).click()
        expect(page.locator("#publish-result")).to_contain_text("1 event published.")
        expect(page.locator("#unread")).to_have_text("1 new")
        go(page, "subscriptions")
        row = page.locator("#notifications details").first
        expect(row).to_contain_text('{"category":"Toy","price":4.25}')
        expect(row).to_contain_text("mine, é")
        expect(page.locator("#unread")).to_be_hidden()

        page.reload()  # the ticket is kept
        expect(page.locator("#view-subscriptions")).to_be_visible()
        page.locator("#filter-mine").check()
        row = page.locator("#list details")
        expect(row).to_have_count(1)
        row.locator("summary").click()
        expect(row.locator(".facts")).to_contain_text("alice")
        row.get_by_role("combobox").select_option("1 week")
        row.get_by_role("button", name="Renew for").click()
        expect(row.locator("summary")).to_contain_text("expires in 7 days")
        row.get_by_role("button", name="Earlier notifications").click()
        expect(page.locator("#notifications details").first).to_contain_text('"price":4.25')
        row.get_by_role("button", name="Delete").click()
        row.get_by_role("button", name="Keep it").click()
        row.get_by_role("button", name="Delete").click()
        row.get_by_role("button", name="Delete for good").click()
        expect(page.locator("#list")).to_have_text("Deleted: mine, é")
        assert server.get("/subscriptions/mine%2C%20%C3%A9", headers={"Harken-Ticket": ticket}).status_code == 404
        assert page.evaluate("Object.values(localStorage)") == ["{}"]


def keep_ticket(page: Page, id: str, ticket: str) -> Locator:
    """Give the page a ticket by hand. Returns the open row of its subscription."""
    go(page, "subscriptions")
    row = page.locator("#list > li").filter(has_text=id)
    row.locator("summary").click()
    row.get_by_label("Its ticket").fill(ticket)
    row.get_by_role("button", name="Use it").click()
    expect(row.locator(".facts")).to_be_visible()
    return row


def test_several_subscriptions_are_watched_at_once(page: Page, server: httpx.Client) -> None:
    plain = {"id": "a-plain", "where": "watched = 1", "delivery": {"format": "cloudevents"}}
    digest = {"id": "a-digest", "where": "watched > 0", "delivery": {"max_delay": 0.3}}
    for made in [server.post("/subscriptions", json=body).json() for body in (plain, digest)]:
        row = keep_ticket(page, made["id"], made["ticket"])
        row.get_by_role("button", name="Watch").click()
        expect(row.get_by_role("button", name="Stop watching")).to_be_visible()
    expect(page.locator("#watched li")).to_have_count(2)
    expect(page.locator("#watching-state")).to_have_text("watching")
    publish(server, {"watched": 1}, {"watched": 2}, {"watched": 1})
    rows = page.locator("#notifications > li")
    expect(rows).to_have_count(5)
    expect(rows.filter(has_text="a-plain")).to_have_count(2)
    expect(page.locator("#watching-state")).to_have_text("watching, 5 notifications so far")

    page.get_by_role("button", name="Stop watching a-plain").click()
    expect(page.locator("#watched li")).to_have_count(1)
    assert page.evaluate("document.activeElement.id") == "watching-title"
    expect(page.locator("#watching-state")).to_have_text("watching, 5 notifications so far")
    publish(server, {"watched": 1})
    expect(rows).to_have_count(6)
    expect(rows.filter(has_text="a-digest")).to_have_count(4)


def test_nothing_is_missed_while_the_stream_is_opened_again(page: Page, server: httpx.Client) -> None:
    bodies = [{"id": id, "where": "opened = 1"} for id in ("b-first", "b-second")]
    first, second = [server.post("/subscriptions", json=body).json() for body in bodies]
    keep_ticket(page, "b-first", first["ticket"]).get_by_role("button", name="Watch").click()
    expect(page.locator("#watching-state")).to_have_text("watching")
    row = keep_ticket(page, "b-second", second["ticket"])

    def open_late(route: Route) -> None:
        publish(server, {"opened": 1})
        route.continue_()

    page.route("**/stream?*", open_late)
    row.get_by_role("button", name="Watch").click()
    expect(page.locator("#notifications > li")).to_have_count(2)


def test_a_restart_of_the_server_is_survived(browser: Browser, tmp_path: Path) -> None:
    port = free_port()
    with ExitStack() as stack:
        with running_server(tmp_path, port=port) as server:
            made = server.post("/subscriptions", json={"id": "patient", "where": "price < 5"}).json()
            restarting = r"net::ERR_|status of 503|status of 401 .*/stream"
            page = stack.enter_context(opened(browser, server, expected=restarting))
            keep_ticket(page, "patient", made["ticket"]).get_by_role("button", name="Watch").click()
            expect(page.locator("#watching-state")).to_have_text("watching")
        expect(page.locator("#state")).to_have_text("no connection, trying again")
        with running_server(tmp_path, port=port) as server:
            publish(server, {"price": 1})
            expect(page.locator("#state")).to_have_text("live", timeout=60_000)
            expect(page.locator("#watching-state")).to_have_text(re.compile("^watching"), timeout=60_000)
            publish(server, {"price": 2})
            expect(page.locator("#notifications")).to_contain_text('{"price":2}')


def test_the_list_is_filtered_and_paged(page: Page, server: httpx.Client) -> None:
    made = server.post("/subscriptions", json={"id": "filtered", "where": "//offer", "language": "xpath"}).json()
    go(page, "subscriptions")
    rows = page.locator("#list > li")
    expect(rows).to_have_count(25)
    page.get_by_role("button", name="Next").click()
    expect(page.locator("#list-page")).to_have_text("Page 2")
    expect(page.locator("#list")).to_contain_text("seen-29")
    page.get_by_role("button", name="Back").click()
    expect(rows).to_have_count(25)
    expect(page.get_by_role("button", name="Back")).to_be_disabled()

    page.locator("#filter-language").select_option("xpath")
    expect(rows).to_have_count(1)
    expect(rows).not_to_contain_text("//offer")  # nobody sees it without the ticket
    keep_ticket(page, "filtered", made["ticket"])
    expect(rows.locator("pre")).to_have_text("//offer")
    server.delete("/subscriptions/filtered", headers={"Harken-Ticket": made["ticket"]}).raise_for_status()


def test_explain_shows_the_tree(page: Page) -> None:
    go(page, "explain")
    page.locator("#explain-where").fill("category = 'Toy' AND (price < 5 OR weight > 3)")
    page.locator("#explain-event").fill('{"category": "Toy", "price": 9}')
    page.get_by_role("button", name="Explain", exact=True).click()
    expect(page.locator("#verdict")).to_have_text("It does not match")
    parts = [re.sub(r"\s+", " ", each).strip() for each in page.locator(".tree .part").all_inner_texts()]
    marks = {"true": "✓", "false": "✗", "unknown": "?"}
    assert [each[0] for each in parts] == [marks[name] for name in ("unknown", "true", "unknown", "false", "unknown")]
    assert parts[3].endswith("price < 5 price is 9")
    assert parts[4].endswith("weight > 3 weight is missing")


def test_explain_takes_events_from_the_live_list_and_documents(page: Page, server: httpx.Client) -> None:
    publish(server, {"category": "Clock", "price": 5})
    page.locator("#events details").filter(has_text="Clock").first.locator("summary").click()
    page.get_by_role("button", name="Explain it").click()
    expect(page.locator("#explain-event")).to_have_value(json.dumps({"category": "Clock", "price": 5}, indent=2))
    page.locator("#explain-language").select_option("xpath")
    page.locator("#explain-where").fill("/offer[price > 3]")
    page.locator("#explain-event").fill("<offer><price>4</price></offer>")
    page.get_by_role("button", name="Explain", exact=True).click()
    expect(page.locator("#verdict")).to_have_text("It matches")


def test_what_is_wrong_with_an_event_is_said(browser: Browser, server: httpx.Client) -> None:
    with opened(browser, server, expected=r"status of 4\d\d .*/events$") as page:
        go(page, "publish")
        page.locator("#publish-event").fill('{"price": }')
        page.get_by_role("button", name="Publish", exact=True).click()
        expect(page.locator("#publish-result .problem")).to_be_visible()
        go(page, "explain")
        page.locator("#explain-where").fill("price < 5")
        page.locator("#explain-event").fill('{"price": }')
        page.get_by_role("button", name="Explain", exact=True).click()
        expect(page.locator("#explanation")).to_contain_text("not JSON")


def test_the_plan_is_readable(page: Page) -> None:
    go(page, "plan")
    expect(page.locator("#plan .tiles")).to_be_visible()
    names, values = (page.locator(f"#plan {tag}").all_inner_texts() for tag in ("dt", "dd"))
    tiles = dict(zip(names, values, strict=True))
    assert tiles["algorithm"] == "columnar"
    assert int(tiles["subscriptions"]) >= 30
    expect(page.locator("#plan table").first).to_contain_text("price number")


def test_text_from_outside_stays_text(page: Page, server: httpx.Client) -> None:
    evil = "<img src=x onerror=alert(1)>"
    made = server.post("/subscriptions", json={"id": evil, "where": f"name = '{evil}'"}).json()
    publish(server, {"name": evil})
    expect(page.locator("#events details").first).to_contain_text("<img src=x")
    page.locator("#events summary").first.click()
    expect(page.locator("#events .chip").first).to_have_text(evil)
    go(page, "subscriptions")
    expect(page.locator("#list")).to_contain_text(evil)
    assert page.locator("img").count() == 0
    assert page.title() == "Subscriptions · Harken"
    address = "/subscriptions/" + "".join(f"%{byte:02X}" for byte in evil.encode())
    server.delete(address, headers={"Harken-Ticket": made["ticket"]}).raise_for_status()


def test_a_server_with_api_keys_is_opened_with_one(browser: Browser, tmp_path: Path) -> None:
    admin, subscriber = new_credential(KEY), new_credential(KEY)
    with closing(open_store(str(tmp_path / "harken.db"))) as store, store.writing(1) as writing:
        writing.add_key(ApiKey("a", "root", frozenset({"admin"}), None, 1), hashed(admin))
        writing.add_key(ApiKey("b", "alice", frozenset({"subscribe"}), None, 2), hashed(subscriber))
    locked = "an API key with the scope admin is needed"
    rejected = r"status of 40[13] "
    with (
        running_server(tmp_path, "--api-keys") as server,
        opened(browser, server, expected=rejected, state=locked) as page,
    ):
        expect(page.locator("#key-note")).to_contain_text("asks for an API key")
        page.locator("#key").fill("hk_unknown")
        page.keyboard.press("Enter")
        expect(page.locator("#key-note")).to_have_text("The server does not know this API key.")

        page.locator("#key").fill(subscriber)  # sees her own, but not what everybody publishes
        page.keyboard.press("Enter")
        expect(page.locator("#key-form")).to_be_hidden()
        expect(page.locator("#state")).to_have_text(locked)
        go(page, "write")
        page.locator("#where").fill("price < 5")
        page.locator("#new-id").fill("hers")
        page.get_by_role("button", name="Subscribe").click()
        expect(page.locator("#ticket h2")).to_have_text("Subscribed as hers")
        page.evaluate("localStorage.clear()")  # the key of its owner does as well as the ticket
        go(page, "subscriptions")
        page.locator("#list summary").click()
        expect(page.locator("#list .facts")).to_contain_text("alice")
        page.get_by_role("button", name="Watch").click()
        expect(page.locator("#watching-state")).to_have_text("watching")

        page.get_by_role("button", name="API key").click()
        page.locator("#key").fill(admin)
        page.keyboard.press("Enter")
        expect(page.locator("#state")).to_have_text("live")
        go(page, "publish")
        page.locator("#publish-event").fill('{"price": 1}')
        page.get_by_role("button", name="Publish", exact=True).click()
        expect(page.locator("#unread")).to_have_text("1 new")
        assert page.evaluate("Object.values(sessionStorage)") == [admin]
        assert page.evaluate("Object.values(localStorage)") == []
        page.get_by_role("button", name="API key").click()
        page.get_by_role("button", name="Forget it").click()
        expect(page.locator("#state")).to_have_text(locked)
