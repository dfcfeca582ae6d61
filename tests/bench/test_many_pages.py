"""A thousand open pages on one web process: how soon all hear a piece of news, at what memory.

The web process is one of its own beside the demo's, without workers; the pages are sockets of this
process, each of the same signed-in person.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import redis.asyncio

from playground.demo.demo import answers
from playground.demo.folder import secret_key
from playground.demo.programs import environment
from playground.running.ports import free_port
from playground.running.services import Services
from tests.bench.test_page_numbers import Person
from tests.journeys.conftest import ROOT, Demo, demo
from tests.journeys.test_first_device import until

__all__ = ["demo"]

pytestmark = [pytest.mark.bench, pytest.mark.cluster]

PAGES = int(os.environ.get("BERTH_BENCH_PAGES", "1000"))
NEWS = 20
RESULTS = Path(__file__).parents[2] / "bench-results" / "pages.json"


async def page(
    host: str, port: int, cookie: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Opens one page's stream; returns when it says ready."""
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(
        f"GET /t/tidewater-vision/events/ HTTP/1.1\r\nHost: localhost:{port}\r\n"
        f"Cookie: {cookie}\r\nAccept: text/event-stream\r\n\r\n".encode()
    )
    await writer.drain()
    await heard(reader, b"event: ready")
    return reader, writer


async def heard(reader: asyncio.StreamReader, line: bytes) -> float:
    while True:
        got = await reader.readline()
        assert got, "the stream ended"
        if line in got:
            return time.perf_counter()


def test_a_thousand_open_pages(demo: Demo, capsys: pytest.CaptureFixture[str]) -> None:
    port = free_port()
    services = Services(demo.folder)
    env = environment(
        demo.folder, f"http://localhost:{port}", services.env, secret_key(demo.folder)
    )
    uvicorn = ("-m", "uvicorn", "portal.asgi:application", "--port", str(port), "--no-access-log")
    web = subprocess.Popen([sys.executable, *uvicorn], env={**os.environ, **env}, cwd=ROOT)
    try:
        until(lambda: answers(port), 60)
        person = Person(f"http://localhost:{port}", "plover")
        cookie = person.headers()["Cookie"]
        before = psutil.Process(web.pid).memory_info().rss
        times = asyncio.run(listen(port, cookie, env))
        grown = psutil.Process(web.pid).memory_info().rss - before
    finally:
        web.terminate()
        web.wait(20)
    times.sort()
    figures = {
        "pages": PAGES,
        "news": NEWS,
        "p50_ms": round(times[len(times) // 2] * 1000, 1),
        "p95_ms": round(times[len(times) * 95 // 100] * 1000, 1),
        "kib_a_page": round(grown / 1024 / PAGES, 1),
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(figures))
    with capsys.disabled():
        print(f"\n{figures}")
    assert len(times) == PAGES * NEWS, "every page heard all news"


async def listen(port: int, cookie: str, env: dict[str, str]) -> list[float]:
    """From just before each publishing until each page heard it, in seconds."""
    pages = []
    for start in range(0, PAGES, 50):
        opened = (page("127.0.0.1", port, cookie) for _ in range(start, min(start + 50, PAGES)))
        pages += await asyncio.gather(*opened)
    client = redis.asyncio.Redis.from_url(env["VALKEY_URL"])
    times: list[float] = []
    for _ in range(NEWS):
        message = json.dumps({"tenant": "tidewater-vision", "topics": ["bench"]})
        began = time.perf_counter()
        await client.xadd("berth:news:kept", {"news": message})
        ends = await asyncio.gather(*(heard(reader, b"event: bench") for reader, _ in pages))
        times += [end - began for end in ends]
    await client.aclose()
    for _, writer in pages:
        writer.close()
    return times
