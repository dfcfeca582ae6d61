"""Looking at a page as a careful reviewer does: at every width, in both themes.

Set BERTH_SHOTS to a folder to keep a picture of each; look at them before changing the stylesheet.
"""

from __future__ import annotations

import os
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
#: Width and theme, and which rules can give another answer there; None: all of them.
SCREENS: tuple[tuple[int, str, list[str] | None], ...] = (
    (1440, "light", None),
    (1440, "dark", ["color-contrast"]),
    (820, "light", ["target-size", "scrollable-region-focusable"]),
    (390, "dark", ["color-contrast", "target-size", "scrollable-region-focusable"]),
)


def look_at(page: Page, name: str, rules: list[str] | None = None) -> None:
    """Fails on accessibility rules, on anything wider than the screen, and on a second filled
    button; keeps a picture where BERTH_SHOTS says so.
    """
    page.wait_for_load_state("load")
    expect(page.locator("h1")).to_have_count(1)
    # What is being fetched anew is dimmed for a moment, on purpose.
    expect(page.locator(".htmx-request:not([data-live]), [aria-busy=true]")).to_have_count(0)
    only = {"type": "rule", "values": rules} if rules else {"type": "tag", "values": RULES}
    found = Axe().run(page, options={"runOnly": only})
    assert found.violations_count == 0, f"{name}: {found.generate_report()}"
    wider = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wider <= 0, f"{name} is {wider} px wider than the screen"
    assert page.locator(".btn-primary:visible").count() <= 1, f"{name} has two loud buttons"
    if folder := os.environ.get("BERTH_SHOTS"):
        width = page.evaluate("innerWidth")
        narrow = f"-{width}" if width != SCREENS[0][0] else ""
        dark = (
            "-dark" if page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") else ""
        )
        page.screenshot(path=Path(folder) / f"{name}{narrow}{dark}.png", full_page=True)


def look_everywhere(page: Page, name: str) -> list[str]:
    """Looks at a page at every width and theme, loaded once; returns what is wrong, in words."""
    wrong = []
    for width, theme, rules in SCREENS:
        page.set_viewport_size({"width": width, "height": 900})
        # What glides from one theme's colours to the other's is not looked at on its way.
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]
        try:
            look_at(page, name, rules)
        except AssertionError as failed:
            wrong.append(f"{name} ({page.url}) at {width} px, {theme}: {failed}")
    page.set_viewport_size({"width": SCREENS[0][0], "height": 900})
    page.emulate_media(color_scheme="light")
    return wrong
