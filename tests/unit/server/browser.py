"""A real browser on the page of a real server, and what it notices: errors, rejected loads, focus, contrast."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from services.processes import free_port, running

_ARGUMENTS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
_TIMEOUT = 60_000
expect.set_options(timeout=_TIMEOUT)

# What is wrong with a page's accessibility that a script can see, as a list of texts.
UNNAMED = """() => [...document.querySelectorAll('input, select, textarea, button, a[href]')]
  .filter((each) => each.checkVisibility())
  .filter((each) => !(each.labels?.length || each.getAttribute('aria-label') || each.textContent.trim()))
  .map((each) => each.outerHTML.slice(0, 120))"""

FOCUSABLE = """() => {
  const all = 'a[href], button, input, select, textarea, summary, [tabindex="0"]';
  const shown = (each) => each.checkVisibility({ visibilityProperty: true }) && !each.disabled;
  const found = [...document.querySelectorAll(all)].filter(shown);
  // Of radio buttons of one name, Tab reaches the one that is checked.
  const kept = found.filter((each) => each.type !== 'radio' || each.checked);
  kept.forEach((each, place) => (each.dataset.place = place));
  return kept.map((each) => `${each.tagName} ${each.id || each.textContent.trim().slice(0, 30)}`);
}"""

FOCUSED = """() => {
  const at = document.activeElement;
  const style = getComputedStyle(at);
  const marked = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
  return { place: at.dataset.place ?? null, marked, what: at.outerHTML.slice(0, 80) };
}"""

# Text whose contrast with what is behind it is below AA: 4.5, or 3 where it is large.
FAINT = """() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b].map((each) => each / 255)
    .map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4))
    .reduce((sum, each, place) => sum + each * [0.2126, 0.7152, 0.0722][place], 0);
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const found = rgba(getComputedStyle(at).backgroundColor);
      if (found[3] === 255) return found;
    }
    return [255, 255, 255, 255];
  };
  const faint = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const isDisabled = element.closest(':disabled, .mirror, .unseen, .skip, noscript, option') !== null;
    if (!walker.currentNode.data.trim() || isDisabled || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const [one, two] = [light(rgba(style.color)), light(ground(element))].sort((a, b) => b - a);
    const ratio = (one + 0.05) / (two + 0.05);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (isLarge ? 3 : 4.5)) faint.push(`${ratio.toFixed(2)} ${walker.currentNode.data.trim().slice(0, 40)}`);
  }
  return faint;
}"""

# How many pixels of a chart have about this colour.
PAINTED = """([canvas, name]) => {
  const drawn = document.querySelector(canvas);
  const copy = Object.assign(document.createElement('canvas'), { width: drawn.width + 1, height: drawn.height });
  const context = copy.getContext('2d', { willReadFrequently: true });
  context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  context.fillRect(drawn.width, 0, 1, 1);
  context.drawImage(drawn, 0, 0);
  const [r, g, b] = context.getImageData(drawn.width, 0, 1, 1).data;
  const data = context.getImageData(0, 0, drawn.width, drawn.height).data;
  let count = 0;
  for (let at = 0; at < data.length; at += 4) {
    const near = Math.abs(data[at] - r) + Math.abs(data[at + 1] - g) + Math.abs(data[at + 2] - b) < 40;
    if (near && data[at + 3] > 200) count += 1;
  }
  return count;
}"""

UNSOUND = r"status of 422 .*/check$"
"""A condition that is not sound is answered with 422, and browsers report that in their consoles."""

_WATCH = """
window.violations = [];
const note = (each) => window.violations.push([each.violatedDirective, each.blockedURI]);
addEventListener('securitypolicyviolation', note);
"""


@contextmanager
def running_server(folder: Path, *options: str, port: int | None = None) -> Iterator[httpx.Client]:
    """A `harken serve` of its own, as a client of it."""
    port = port or free_port()
    command = [sys.executable, "-m", "harken", "serve", "--port", str(port), "--store", str(folder / "harken.db")]
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:

        def is_ready() -> bool:
            try:
                return client.get("/readyz").status_code == 200
            except httpx.TransportError:
                return False

        with running([*command, *options], folder / "server.log", is_ready, cwd=folder):
            yield client


@contextmanager
def seeded_server(folder: Path) -> Iterator[httpx.Client]:
    """A server with subscriptions to prices, seen-00 to seen-29, and events in its journal."""
    with running_server(folder) as client:
        for number in range(30):
            body = {"id": f"seen-{number:02d}", "where": f"price < {number + 1}", "owner": "demo"}
            assert client.post("/subscriptions", json=body).status_code == 201
        events = [{"category": "Toy" if number % 4 else "Lamp", "price": number / 2} for number in range(200)]
        assert client.post("/events", json=events).json()["accepted"] == 200
        yield client


@contextmanager
def running_browser() -> Iterator[Browser]:
    """The Chromium of this machine. The test is skipped where there is none."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("no Chromium is installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=_ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(
    browser: Browser, server: httpx.Client, *, expected: str = r"^$", state: str = "live", **options: Any
) -> Iterator[Page]:
    """The page in a context of its own, once the state of its connection is this.

    What the console tells and nobody expected, and every load that the policy rejects, fails the test.
    """
    settings = {"viewport": {"width": 1200, "height": 900}, **options}
    context = browser.new_context(base_url=str(server.base_url), **settings)
    try:
        page = context.new_page()
        page.set_default_timeout(_TIMEOUT)
        told: list[str] = []
        page.on("pageerror", lambda error: told.append(f"error {error}"))
        page.on("console", lambda each: told.append(f"{each.type} {each.text} {each.location.get('url', '')}"))
        page.add_init_script(_WATCH)
        page.goto("/")
        expect(page.locator("#state")).to_have_text(state)
        yield page
        wrong = page.evaluate("window.violations") + [each for each in told if not re.search(expected, each)]
        assert not wrong, wrong
    finally:
        context.close()


def wait_until(page: Page, holds: Callable[[], bool]) -> None:
    """Wait until it holds. Playwright's own way evaluates text in the page, which the policy forbids."""
    for _ in range(_TIMEOUT // 100):
        if holds():
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"{holds} never held")


def overflow(page: Page) -> int:
    """By how many pixels the page is wider than its window."""
    found: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return found


def go(page: Page, view: str) -> None:
    """Go to a view by its link."""
    page.get_by_role("navigation").locator(f'a[href="#{view}"]').click()
    expect(page.locator(f"#view-{view}")).to_be_visible()


def is_painted(page: Page, canvas: str, colour: str) -> bool:
    """Whether a line of this colour is on a chart."""
    return bool(page.evaluate(PAINTED, [canvas, colour]) > 50)


def publish(server: httpx.Client, *events: dict[str, object]) -> None:
    """Publish events past the page."""
    assert server.post("/events", json=list(events)).status_code == 202
