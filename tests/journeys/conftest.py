"""One whole demo for all journeys, a browser, and kubectl's place taken by a plain gateway."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

from devices.cluster import connect
from devices.cluster.gateway import Gateway
from playground.demo.cluster import plane_folder
from playground.plane.controlplane import ControlPlane
from playground.running.ports import free_port
from tests.playground.planes import NEWEST, built

ROOT = Path(__file__).resolve().parents[2]
UP_WITHIN = 240.0
PASSWORD = "berth-demo-2026"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass(frozen=True, slots=True)
class Demo:
    """A running `make demo` in a folder of its own."""

    address: str
    folder: Path
    process: subprocess.Popen[str] | None

    @property
    def plane(self) -> ControlPlane:
        return ControlPlane.open(plane_folder(self.folder))

    @property
    def gateway(self) -> Gateway:
        """What an administrator with kubectl may do."""
        return connect(self.plane.admin_kubeconfig)

    def log(self, name: str) -> str:
        return (self.folder / "logs" / f"{name}.log").read_text(errors="replace")


def start_demo(folder: Path, *options: str, up: str = "All up") -> Demo:
    """Starts one and waits until it says that all is up; fails with what it said otherwise."""
    built(NEWEST)
    port = free_port()
    said = folder.parent / "terminal.log"
    command = [sys.executable, "-m", "playground", "demo", "--port", str(port)]
    with said.open("w") as terminal:
        process = subprocess.Popen(
            [*command, "--folder", str(folder), *options],
            cwd=ROOT,
            stdout=terminal,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "DATABASE_URL": "", "PYTHONUNBUFFERED": "1"},
            start_new_session=True,
        )
    end = time.monotonic() + UP_WITHIN
    while up not in said.read_text():
        if process.poll() is not None or time.monotonic() > end:
            process.terminate()
            pytest.fail(f"The demo did not come up:\n{said.read_text()}", pytrace=False)
        time.sleep(0.2)
    return Demo(f"http://localhost:{port}", folder, process)


def taken_demo() -> Demo | None:
    """The demo that BERTH_DEMO names, which nobody here stops."""
    port, _, folder = os.environ.get("BERTH_DEMO", "").partition(":")
    return Demo(f"http://localhost:{port}", Path(folder).resolve(), None) if folder else None


def stop_demo(demo: Demo) -> None:
    if demo.process is not None:
        demo.process.send_signal(signal.SIGINT)
        demo.process.wait(timeout=30)


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """The demo that all journeys share; each of them uses names of its own.

    While writing a journey, BERTH_DEMO=8000:.demo takes the one that runs there already.
    """
    running = taken_demo() or start_demo(tmp_path_factory.mktemp("journey") / "demo")
    yield running
    stop_demo(running)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """The system's Chromium: none is downloaded."""
    named = os.environ.get("BERTH_CHROMIUM")
    found = named or next(filter(None, map(shutil.which, CHROMIUM)), None)
    if found is None:
        pytest.fail("Chromium is missing: apt-get install chromium", pytrace=False)
    return {**browser_type_launch_args, "executable_path": found, "args": QUIET}


SignIn = Callable[..., Page]


def where(said: ConsoleMessage) -> str:
    """What the console said, and the page that made it say so."""
    page = said.page.url if said.page is not None else "no page"
    return f"{page}: {said.text}"


@pytest.fixture
def sign_in(browser: Browser, demo: Demo) -> Iterator[SignIn]:
    """`sign_in("plover", width=390, dark=True)`: a page of that person's own browser.

    The test fails on errors in the console and on scripts or styles that the policy blocked.
    """
    contexts: list[BrowserContext] = []
    wrong: list[str] = []

    def open_page(username: str, *, width: int = 1440, dark: bool = False) -> Page:
        context = browser.new_context(
            base_url=demo.address,
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            permissions=["clipboard-read", "clipboard-write"],
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: wrong.append(where(said)) if said.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto("/")
        page.get_by_label("User name or mail address").fill(username)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(lambda url: "/account/login" not in url)
        return page

    yield open_page
    for context in contexts:
        context.close()
    # A refusal that a test asks for is logged by Chromium as a failed resource, the end of a stream
    # of news (a tenant that was closed, a server that restarts) by htmx; these are no errors.
    quiet = ("status of 4", ": [object Event]")
    assert [text for text in wrong if not any(words in text for words in quiet)] == []
