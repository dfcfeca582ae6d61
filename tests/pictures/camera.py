"""A browser that is handed a page of the application: no server, the product's own style sheet.

The page is what the view answers; style, fonts and icons come from the files; whatever else a page
fetches gets no answer, and its stream stays open without news, so the picture stands still.
"""

from __future__ import annotations

import mimetypes
from pathlib import Path
from urllib.parse import urlsplit

from django.contrib.staticfiles import finders
from playwright.sync_api import Browser, Page, Route

from tests.pictures.stage import Shown

SITE = "http://berth.example"
WIDTH, HEIGHT = 1200, 640
#: No picture may be larger; what does not fit is taken with less quality.
LARGEST = 40 * 1024
QUALITIES = (72, 60, 48, 36, 26)


def show(browser: Browser, shown: Shown) -> Page:
    """The page in a browser of its own, at 1200 px, light."""
    answer = shown.client.get(shown.address, follow=True)
    assert answer.status_code == 200, answer.content[:300]
    html = answer.content.decode()
    context = browser.new_context(
        base_url=SITE,
        viewport={"width": WIDTH, "height": HEIGHT},
        color_scheme="light",
        reduced_motion="reduce",
    )
    page = context.new_page()

    def reply(route: Route) -> None:
        path = urlsplit(route.request.url).path
        if "text/event-stream" in route.request.headers.get("accept", ""):
            return
        if route.request.is_navigation_request():
            route.fulfill(body=html, content_type="text/html; charset=utf-8")
        elif path.startswith("/static/") and (file := finders.find(path.removeprefix("/static/"))):
            kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
            route.fulfill(body=Path(str(file)).read_bytes(), content_type=kind)
        else:
            route.abort()

    page.route("**/*", reply)
    page.goto(shown.address, wait_until="load")
    return page


def take(page: Page, code: str, path: Path) -> None:
    """A picture of what the page says of the code, at most 40 KB."""
    page.evaluate("document.activeElement?.blur(); document.fonts.ready")
    main = page.locator("main").bounding_box() or {"x": 0, "y": 0, "width": WIDTH, "height": 0}
    mark = page.get_by_text(code, exact=True).first.bounding_box()
    assert mark is not None, f"{code} cannot be seen"
    whole = page.evaluate("document.documentElement.scrollHeight")
    # From the top of the page where the code stands near it, else from a bit above the code.
    top = 0.0 if mark["y"] < HEIGHT - 80 else mark["y"] - HEIGHT / 3
    clip = {
        "x": main["x"],
        "y": top,
        "width": main["width"],
        "height": min(HEIGHT, whole - top),
    }
    for quality in QUALITIES:
        shot = page.screenshot(type="jpeg", quality=quality, full_page=True, clip=clip)  # type: ignore[arg-type]
        if len(shot) <= LARGEST:
            break
    else:
        raise AssertionError(f"{code}: {len(shot)} bytes are too many")
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(shot)
