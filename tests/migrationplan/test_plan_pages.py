"""The pages of plans: what they say there is to do, what they cost, and whom they tell nothing."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from devices.models import NodePool
from migrationplan.models import Plan, WaveNode
from tenants.access import PlatformAccess
from tenants.models import User
from tests.devices.pages import client_of, text
from tests.migrationplan.test_plan import THREE, a_plan, a_pool, person

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator() -> PlatformAccess:
    return person("olga", "operator")


@pytest.fixture
def approver() -> PlatformAccess:
    return person("pike", "approver")


@pytest.fixture
def pool(operator: PlatformAccess) -> NodePool:
    return a_pool(operator, 10)


def page(access: PlatformAccess, address: str) -> str:
    answer = client_of(access.user).get(address)
    assert answer.status_code == 200, answer.content
    return text(answer)


def test_the_pages_say_what_there_is_to_do(
    operator: PlatformAccess, approver: PlatformAccess
) -> None:
    assert "No plan yet" in page(operator, "/platform/plans/")
    assert "No strategy yet" in page(operator, "/platform/strategies/")
    assert "Nothing is entered" in page(operator, "/platform/plan-calendar/")
    a_pool(operator, 10)
    client = client_of(operator.user)
    form: dict[str, Any] = {"slug": "usual", "name": "Usual", "words": "", "waves": "2"}
    for number, (name, percent) in enumerate((("Canary", 10), ("The rest", 100))):
        form |= {
            f"w{number}-name": name, f"w{number}-percent": percent, f"w{number}-concurrency": 1,
            f"w{number}-max_errors": 0, f"w{number}-soak": "1h", f"w{number}-windows": "",
            f"w{number}-on_failure": "pause", f"w{number}-audience": "all",
            f"w{number}-approvals_needed": 1,
        }  # fmt: skip
    assert client.post("/platform/strategies/", form).status_code == 302
    wrong = client.post("/platform/strategies/", {**form, "slug": "b", "w0-windows": "at night"})
    assert wrong.status_code == 422 and "Write a window such as" in text(wrong)
    asked = {"name": "H100", "pools": ["h100"], "direction": "to DRA", "strategy": "usual"}
    made = client.post("/platform/plans/", asked, follow=True)
    assert "P-" in text(made) and "Wave 1, Canary" in text(made)
    plan = Plan.objects.get()
    address = f"/platform/plans/{plan.public_id}/waves/1/"
    assert "its waves are drafts" in text(made)
    shown = client.post(address, {"act": "pause", "reason": "x"})
    assert shown.status_code == 422 and "nothing is under way" in text(shown)
    assert client.post(address, {"act": "submit", "reason": "go"}).status_code == 302
    assert "Change wave 1" in page(operator, f"{address}edit/")
    assert "must be submitted again" in page(operator, f"{address}edit/")
    assert "take that back here" in page(approver, address)
    assert client_of(approver.user).post(address, {"act": "pause"}).status_code == 403


def test_a_plan_of_5000_nodes_costs_its_page_as_many_queries_as_one_of_two(
    operator: PlatformAccess, pool: NodePool
) -> None:
    plan = a_plan(operator, THREE[2])
    wave, address = plan.waves.get(), f"/platform/plans/{plan.public_id}/"
    client = client_of(operator.user)
    client.get(address)
    few, lists = queries(client, address), queries(client, "/platform/plans/")
    WaveNode.objects.bulk_create(
        WaveNode(wave=wave, pool=pool, node=f"b{n}", node_uid=f"u{n}", position=n + 100)
        for n in range(4990)
    )
    assert (queries(client, address), queries(client, "/platform/plans/")) == (few, lists)
    assert "4,999" in text(client.get(address)) or "5,000" in text(client.get(address))


def queries(client: Client, address: str) -> int:
    with CaptureQueriesContext(connection) as told:
        assert client.get(address).status_code == 200
    return len(told)


def test_strangers_learn_nothing(operator: PlatformAccess, pool: NodePool) -> None:
    plan = a_plan(operator)
    stranger = client_of(User.objects.create_user("nobody"))
    for address in ("plans/", f"plans/{plan.public_id}/", "strategies/", "plan-calendar/"):
        assert stranger.get(f"/platform/{address}").status_code == 404


def test_a_wave_that_has_not_begun_is_changed_or_discarded(
    operator: PlatformAccess, pool: NodePool
) -> None:
    plan = a_plan(operator, THREE[2])
    address = f"/platform/plans/{plan.public_id}/waves/1/"
    shown = page(operator, address)
    assert "Discard the wave" in shown and "Change the wave" in shown
    assert "Roll back" not in shown and "rolling back" not in shown
    client = client_of(operator.user)
    assert client.post(address, {"act": "roll-back", "reason": "twice"}).status_code == 302
    assert "Discarded by hand: twice" in page(operator, address)
    plan.waves.update(phase="rolled back", wish_roll_back="")
    assert "discarded before it began" in page(operator, address)
    plan.waves.update(phase="running")
    assert "Roll back, end nothing" in page(operator, address)


def test_the_news_of_a_wave_bring_what_can_be_decided_and_keep_what_was_chosen(
    operator: PlatformAccess, approver: PlatformAccess, pool: NodePool
) -> None:
    plan = a_plan(operator, THREE[2])
    address = f"/platform/plans/{plan.public_id}/waves/1/"
    client = client_of(operator.user)

    def news(**known: str) -> str:
        answer = client.get(address, known, headers={"HX-Request": "true"})
        return answer.content.decode()

    first = news()
    assert "Discard the wave" in first and "Change the wave" in first
    assert 'name="reason"' not in first, "what somebody writes is not sent anew"
    listed = re.search(r'name="listed" value="(\w+)"', first)
    assert listed, "the nodes to choose from come to a page that has none"
    assert 'id="decide-nodes"' not in news(listed=listed[1]), "and not to one that has them"
    plan.waves.update(phase="running")
    node = plan.waves.get().nodes.order_by("-position")[0]
    second = news(listed=listed[1])
    assert "Roll back, end nothing" in second and "Discard" not in second
    plan.waves.get().nodes.exclude(pk=node.pk).update(stand="converted")
    changed = news(**{"listed": listed[1], "leave-out": node.node})
    assert f'<option value="{node.node}" selected>' in changed
    assert changed.count("<option") == 2, "the others are through"

    none = client.post(address, {"act": "skip", "reason": "sick since noon"})
    assert none.status_code == 422 and "Choose a node to leave out" in text(none)
    assert "sick since noon" in text(none), "what was written is not lost"
    asked = {"act": "skip", "leave-out": node.node, "reason": "sick"}
    assert client.post(address, asked).status_code == 302
    assert f'name="take-in" value="{node.node}"' in news(listed=listed[1])
    assert client.post(address, {"take-in": node.node}).status_code == 302
    assert 'name="take-in"' not in news()
    plan.waves.update(phase="rolled back")
    assert "<option" not in news(listed=listed[1])

    auditor = client_of(person("ada", "auditor").user).get(address).content.decode()
    assert "aria-disabled" in auditor and 'name="reason"' not in auditor
