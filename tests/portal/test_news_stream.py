"""Open pages: what they hear, what they hear when they come back, and when they hear no more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Set
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from devices.views.events import still_allowed
from portal import news, news_stream
from portal.news_stream import Fanout, Viewer, stream
from tenants.models import Membership, PlatformRole, Tenant
from tests.factories import make_person, make_tenant

SOON = 20.0
Event = tuple[str, str]


@pytest.fixture(autouse=True)
def own_fanout(servers: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test has an event loop of its own, so it has readers of its own."""
    monkeypatch.setattr(news_stream, "FANOUT", Fanout())
    news.valkey().delete(news.KEPT)
    yield


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(story(), 60))


def read(sent: bytes) -> list[Event]:
    """(name, id) of each event."""
    events = []
    for block in sent.decode().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        if "event" in lines:
            events.append((lines["event"], lines.get("id", "")))
    return events


async def hear(page: AsyncIterator[bytes], until: str) -> list[Event]:
    """What a page hears up to an event of that name."""
    heard: list[Event] = []
    while not heard or heard[-1][0] != until:
        heard += read(await asyncio.wait_for(anext(page), SOON))
    return heard


def names(heard: list[Event]) -> list[str]:
    return [name for name, _ in heard if name != "ping"]


async def publish(*topics: str, tenant: str = "tidewater") -> None:
    assert await asyncio.to_thread(news.publish, topics, tenant=tenant)


def test_a_page_hears_its_tenants_news_and_everybodys() -> None:
    async def story() -> None:
        page = stream("tidewater")
        assert names(await hear(page, "ready")) == ["ready"]
        await publish("claims", "claim-a")
        await publish("secret", tenant="basalt")
        await publish("cluster", tenant="")
        assert names(await hear(page, "cluster")) == ["claim-a", "claims", "cluster"]
        await page.aclose()

    run(story)


def test_a_page_that_comes_back_hears_what_it_missed_and_nothing_twice() -> None:
    async def story() -> None:
        page = stream("tidewater")
        await hear(page, "ready")
        await publish("claims", "claim-a")
        heard = await hear(page, "claims")
        await page.aclose()
        await publish("limits", "members")
        await publish("secret", tenant="basalt")
        back = stream("tidewater", after=heard[-1][1])
        missed = await hear(back, "members")
        assert names(missed) == ["resumed", "limits", "members"]
        await publish("claims")
        assert names(await hear(back, "claims")) == ["claims"]
        await back.aclose()

    run(story)


def test_a_page_that_comes_while_the_last_one_is_cleared_away_is_not_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client_of = news_stream._client

    def slowly_closed() -> Any:
        client = client_of()
        close = client.aclose

        async def aclose() -> None:
            await asyncio.sleep(1)
            await close()

        client.aclose = aclose
        return client

    async def story() -> None:
        page = stream("tidewater")
        await hear(page, "ready")
        monkeypatch.setattr(news_stream, "_client", client_of)
        await page.aclose()
        await publish("nobody-hears-it")
        while news_stream.FANOUT.subscribed.is_set():
            await asyncio.sleep(0.01)
        back = stream("tidewater")
        await hear(back, "ready")
        await asyncio.sleep(1.2)
        await publish("claims")
        assert names(await hear(back, "claims")) == ["claims"]
        await back.aclose()

    monkeypatch.setattr(news_stream, "_client", slowly_closed)
    run(story)


def test_only_the_last_topic_of_a_message_is_a_place_to_resume_from() -> None:
    async def story() -> None:
        page = stream("tidewater")
        await hear(page, "ready")
        await publish("a", "b", "c")
        heard = await hear(page, "c")
        assert [bool(number) for _, number in heard] == [False, False, True]
        await page.aclose()

    run(story)


@pytest.mark.parametrize("after", ["1-0", "nonsense", "99999999999999999999-0", "-", "1-0\n1-1"])
def test_what_is_not_kept_any_more_is_fetched_anew(after: str) -> None:
    async def story() -> None:
        await publish("claims")
        page = stream("tidewater", after=after)
        assert names(await hear(page, "ready")) == ["ready"]
        await page.aclose()

    run(story)


def test_a_page_that_missed_too_much_fetches_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(news_stream, "LONGEST_QUEUE", 5)

    async def story() -> None:
        page = stream("tidewater")
        first = await hear(page, "ready")
        await page.aclose()
        await publish("a")
        first = [("a", news.valkey().xrevrange(news.KEPT, count=1)[0][0].decode())]
        for number in range(7):
            await publish(f"claim-{number}")
        back = stream("tidewater", after=first[0][1])
        assert names(await hear(back, "ready")) == ["ready"]
        await back.aclose()

    run(story)


def test_who_lost_their_rights_hears_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(news_stream, "RIGHTS_SECONDS", 0.05)
    rosa, tim = Viewer(1, "s", "tidewater"), Viewer(2, "t", "tidewater")

    async def only_tim(viewers: Set[Viewer]) -> Set[Viewer]:
        return viewers & {tim}

    async def story() -> None:
        pages = [stream("tidewater", viewer=viewer) for viewer in (rosa, tim)]
        for page in pages:
            await hear(page, "ready")
        news_stream.FANOUT.allowed = only_tim
        with pytest.raises(StopAsyncIteration):
            while True:
                await asyncio.wait_for(anext(pages[0]), SOON)
        await publish("claims")
        assert names(await hear(pages[1], "claims")) == ["claims"]
        await pages[1].aclose()

    run(story)


def test_hundreds_of_pages_share_one_reader_of_valkey() -> None:
    async def story() -> None:
        pages = [stream("tidewater") for _ in range(300)]
        await asyncio.gather(*(hear(page, "ready") for page in pages))
        before = len(news.valkey().client_list())
        await publish("claims")
        heard = await asyncio.gather(*(hear(page, "claims") for page in pages))
        assert all(names(one) == ["claims"] for one in heard)
        assert before < 20
        for page in pages:
            await page.aclose()

    run(story)


@pytest.mark.django_db(transaction=True)
def test_rights_of_open_pages_are_a_session_an_account_and_a_membership() -> None:
    tenant = make_tenant()
    people = {name: make_person(name, tenant) for name in ("rosa", "left", "locked", "out")}
    people["olm"] = make_person("olm")
    PlatformRole.objects.create(user=people["olm"], role="operator")
    sessions = {}
    for name, person in people.items():
        client = Client()
        client.force_login(person)
        sessions[name] = client.session.session_key or ""
    viewers = {name: Viewer(people[name].pk, sessions[name], "tidewater") for name in people}
    every = frozenset(viewers.values())
    assert still_allowed(every) == every
    Membership.objects.filter(user=people["left"]).delete()
    people["locked"].is_active = False
    people["locked"].save()
    Session.objects.filter(session_key=sessions["out"]).update(
        expire_date=timezone.now() - timedelta(seconds=1)
    )
    assert still_allowed(every) == {viewers["rosa"], viewers["olm"]}
    Tenant.objects.update(state=Tenant.State.CLOSED)
    assert still_allowed(every) == {viewers["olm"]}, "the platform still looks at what was closed"
    assert (
        still_allowed(frozenset({Viewer(people["rosa"].pk, sessions["rosa"], "basalt")})) == set()
    )
