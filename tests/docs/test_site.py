# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The site of `make docs`, in headless Chromium: on a phone and on a desk, light and dark."""

import shutil
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Page, expect, sync_playwright

SITE = Path(__file__).parents[2] / "build/site"
PAGES = sorted(
    str(file.relative_to(SITE).parent)
    for file in SITE.rglob("index.html")
    if not file.is_relative_to(SITE / "source")
)
SCHEMES = {"light": "default", "dark": "slate"}
# What a reader would see. Contrast is as the Web Content Accessibility Guidelines define it.
FAULTS = """() => {
  const light = colour => colour.match(/[\\d.]+/g).slice(0, 3).map(value => value / 255)
    .map(value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
    .reduce((sum, value, k) => sum + value * [0.2126, 0.7152, 0.0722][k], 0)
  const paper = light(getComputedStyle(document.body).backgroundColor)
  const contrast = text => {
    const ends = [light(getComputedStyle(text).color), paper].sort((a, b) => b - a)
    return (ends[0] + 0.05) / (ends[1] + 0.05)
  }
  const texts = [...document.querySelectorAll("article > p, article > p > a, article > ul > li")]
  return [
    ...[...document.images].filter(each => !each.naturalWidth).map(each => "broken " + each.src),
    ...[...document.images].filter(each => !each.alt).map(each => "without words " + each.src),
    ...texts.filter(each => contrast(each) < 4.5).map(each => "pale " + each.outerHTML),
    ...(document.documentElement.scrollWidth > innerWidth ? ["wider than the window"] : []),
  ]
}"""


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    handler = partial(SimpleHTTPRequestHandler, directory=SITE)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    program = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=program).new_page()


def test_what_there_is() -> None:
    assert {".", "docs/losses", "reference/python", "reference/cpp"} <= set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_page_can_be_read(page: Page, site: str, name: str) -> None:
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda each: each.url.startswith(site) or faults.append(each.url))
    page.goto(f"{site}/{name}/")
    page.add_style_tag(content="* { transition: none !important }")  # colours at once
    for scheme in SCHEMES.values():
        page.evaluate(f"document.body.dataset.mdColorScheme = '{scheme}'")
        for width in (390, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            faults += (f"{scheme}, {width}: {fault}" for fault in page.evaluate(FAULTS))
    assert faults == []


@pytest.mark.parametrize("wanted", SCHEMES)
def test_light_or_dark_as_the_reader_has_it(page: Page, site: str, wanted: str) -> None:
    page.emulate_media(color_scheme=wanted)
    page.goto(site)
    expect(page.locator("body")).to_have_attribute("data-md-color-scheme", SCHEMES[wanted])


@pytest.mark.parametrize("name", ["hungarian_match", "AssignProblem"])
def test_search(page: Page, site: str, name: str) -> None:
    page.goto(site)
    page.get_by_placeholder("Search").press_sequentially(name)
    expect(page.locator(".md-search-result__list")).to_contain_text(name)
