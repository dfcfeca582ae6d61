"""Every page that links lead to, at three widths and in both themes, for everybody of the demo.

Each has its picture in docs/screens.md; `make screenshots` takes them anew.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from django.urls import Resolver404, resolve
from playwright.sync_api import Error, Page, expect

from tests.journeys.conftest import Demo, SignIn
from tests.journeys.looking import look_everywhere
from tests.journeys.test_first_device import SOON, TIDEWATER
from tests.journeys.test_look import ask_for_a_pair
from tests.matrix.table import read

pytestmark = [pytest.mark.cluster, pytest.mark.browser]

#: Who walks, in this order; a page that somebody saw already is not looked at again.
WALKERS = ("avocet", "olm", "asp", "pike", "ide")
DOCS = Path(__file__).parents[2] / "docs"
PICTURES, SCREENS = DOCS / "screenshots", DOCS / "screens.md"
PICTURED = "BERTH_PICTURES" in os.environ
#: Who each part of docs/screens.md is for, by route.
GROUPS: dict[str, Callable[[str], bool]] = {
    "For tenants": lambda route: route.startswith("t/"),
    "For those who run the platform": lambda route: route.startswith("platform/"),
    "For everybody": lambda route: not route.startswith(("t/", "platform/")),
}
#: No pages to look at: files, the way out, and what other programs read.
NOT_WALKED = ("account/logout/", "api/", "export", "/file/", ".txt", "download")


def route_of(path: str) -> str | None:
    """The route behind a path of this site; None where none is."""
    try:
        return resolve(path).route
    except Resolver404:
        return None


def links_of(page: Page) -> list[str]:
    found = page.eval_on_selector_all("a[href]:not([download])", "all => all.map(one => one.href)")
    here = urlsplit(page.url)
    parts = [urlsplit(one) for one in found]
    return [
        one.path + (f"?{one.query}" if one.query else "")
        for one in parts
        if (one.scheme, one.netloc) == (here.scheme, here.netloc)
    ]


@dataclass(slots=True)
class Walk:
    """What was met: addresses by route, titles by the name of a page, and what is wrong."""

    seen: dict[str, str] = field(default_factory=dict)
    pages: dict[str, tuple[str, str]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def walk(page: Page, met: Walk) -> None:
    """Looks at each page that nobody met before, by its route."""
    seen, wrong = met.seen, met.wrong
    waiting = deque([urlsplit(page.url).path, *links_of(page)])
    while waiting:
        address = waiting.popleft()
        route = route_of(urlsplit(address).path)
        if route is None or route in seen or any(word in route for word in NOT_WALKED):
            continue
        seen[route] = address
        try:
            answer = page.goto(address)
        except Error as error:
            if "Download is starting" not in error.message:
                raise
            continue
        assert answer is not None
        if answer.status != 200:
            wrong.append(f"{address} answers {answer.status}")
            continue
        if "html" not in answer.headers.get("content-type", ""):
            wrong.append(f"{address} is no page: add a word of {route} to NOT_WALKED")
            continue
        landed = route_of(urlsplit(page.url).path)
        if landed is not None and landed != route:
            seen.setdefault(landed, address)
        name = resolve(urlsplit(page.url).path).view_name.replace(":", "-")
        met.pages[name] = (page.locator("h1").inner_text(), route)
        if PICTURED:
            picture = PICTURES / f"{name}.jpg"
            page.screenshot(path=picture, full_page=True, type="jpeg", quality=55)
        wrong += look_everywhere(page, name)
        waiting.extend(links_of(page))


def gallery(pages: dict[str, tuple[str, str]]) -> str:
    """docs/screens.md: every page under who it is for."""
    parts = ["# Every page\n\nTaken by `make screenshots` of the example people's demo.\n"]
    for title, fits in GROUPS.items():
        parts.append(f"## {title}\n")
        for name, (heading, route) in sorted(pages.items(), key=lambda one: one[1][1]):
            if fits(route):
                parts.append(f"### {heading}\n\n![{heading}](screenshots/{name}.jpg)\n")
    return "\n".join(parts)


def fill(demo: Demo, page: Page) -> None:
    """What gives pages something to show: an ask that runs, and a question for approvers."""
    public_id = ask_for_a_pair(page, "walk")
    expect(page.get_by_role("heading", name="Ready for your Pod")).to_be_visible(timeout=SOON)
    pod = yaml.safe_load(page.locator("#pod").inner_text())
    pod["metadata"]["annotations"] = {"playground.berth.dev/run-for": "3600s"}
    demo.gateway.create(pod)
    page.goto(f"{TIDEWATER}/claims/{public_id}/")
    expect(page.get_by_role("heading", name="Running with")).to_be_visible(timeout=SOON)


def make_plan(page: Page) -> None:
    """A plan for the demo's node pool, by the demo's strategy; nothing of it is submitted."""
    page.goto("/platform/plans/")
    page.get_by_label("Name", exact=True).fill("L40S to DRA")
    page.get_by_label("L40S nodes").check()
    page.get_by_label("Strategy").select_option("careful")
    page.get_by_role("button", name="Make the plan").click()
    expect(page.get_by_role("heading", name="L40S to DRA")).to_be_visible()


@pytest.mark.timeout(1800)  # a hundred pages, each looked at four times
def test_every_page_that_links_lead_to(demo: Demo, sign_in: SignIn) -> None:
    if PICTURED:
        PICTURES.mkdir(exist_ok=True)
    met = Walk()
    fill(demo, sign_in(WALKERS[0]))
    make_plan(sign_in("olm"))
    for username in WALKERS:
        walk(sign_in(username), met)
    pages = {row.route for row in read("pages.txt") if row.method == "GET"}
    unseen = sorted(pages - set(met.seen))
    print(f"{len(met.pages)} pages looked at; no link of the demo led to {len(unseen)}:", *unseen)
    if PICTURED:
        SCREENS.write_text(gallery(met.pages))
    # What links lead to depends on the day: an alert has a page while there is one.
    missing = [name for name in met.pages if not (PICTURES / f"{name}.jpg").exists()]
    print("Without a picture in docs (make screenshots):", *missing)
    assert len(met.pages) > 80, "links lead to fewer pages than they did"
    assert not met.wrong, "\n".join(met.wrong)
