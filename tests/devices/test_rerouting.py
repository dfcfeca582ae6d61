"""Paths of new work, set by operators and followed by asks: verbs, turns and what is told."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import ProgrammingError, transaction
from django.test import Client
from django.utils import timezone

from devices.asks import reconcile
from devices.asks.claims import release_claim
from devices.asks.snippets import manifests
from devices.cluster.gateway import Gateway, Ref
from devices.dra.lifecycle import State
from devices.models import Claim, ClaimEvent, Offer, PluginResource, RouteRule
from devices.routing import rerouting
from devices.routing.rerouting import (
    ResourceNamed,
    end_route,
    forget_resource,
    name_resource,
    set_route,
)
from devices.routing.routes import Path
from devices.tenancy.outside import outside_lines
from portal.alerts.models import Alert
from portal.audit.models import AuditLine
from portal.errors import Invalid, NotPermitted
from portal.outbox.models import OutboxLine
from tenants.access import Access, PlatformAccess
from tenants.models import BudgetLine
from tests.devices.demofleet import mirror
from tests.devices.test_freezes import somebody
from tests.factories import GPU_CONTENT, NOON, make_access, make_claim, make_version

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)
NAME = "x.example/gpu"
#: What the cluster has of the class: some by DRA, some by the plugin.
BOTH = {"total": 8, "plugin": {"resource": NAME, "allocatable": 8, "requested": 0}}


@pytest.fixture
def operator() -> PlatformAccess:
    Offer.objects.create(device_class="gpu", counts=BOTH, counted_at=NOON)
    Offer.objects.create(device_class="bare", counts={"total": 1, "plugin": None}, counted_at=NOON)
    return somebody("operator")


def set_it(access: PlatformAccess, path: str = Path.PLUGIN, **asked: Any) -> RouteRule:
    given: dict[str, Any] = {
        "device_class": "gpu",
        "path": str(path),
        "reason": "Pool 3 is moved.",
        "request_id": "request-r",
        "now": NOON,
    }
    return set_route(access=access, **{**given, **asked})


def end_it(access: PlatformAccess, rule: RouteRule) -> None:
    end_route(access=access, public_id=rule.public_id, request_id="request-e", now=NOON + HOUR)


def woken() -> list[str]:
    return sorted(
        set(OutboxLine.objects.filter(task=reconcile.RECONCILE).values_list("key", flat=True))
    )


# --- who may set what -----------------------------------------------------------------------------


def test_what_was_set_stays_in_the_book(operator: PlatformAccess) -> None:
    first = set_it(operator)
    set_it(operator, Path.CLAIM, tenant="", now=NOON + HOUR, until=NOON + 2 * HOUR)
    end_it(operator, first)
    end_it(operator, first)
    first.refresh_from_db()
    assert (first.end, first.ended_at) == ("lifted", NOON + HOUR)
    assert RouteRule.objects.count() == 2
    actions = AuditLine.objects.filter(action__startswith="route").values_list("action", flat=True)
    assert sorted(actions) == ["route.ended", "route.set", "route.set"]
    for change in ({"path": "claim"}, {"reason": "another"}, {"ended_at": NOON}):
        with pytest.raises(ProgrammingError), transaction.atomic():
            RouteRule.objects.filter(pk=first.pk).update(**change)


@pytest.mark.parametrize("role", ["auditor", "approver"])
def test_nobody_else_sets_one(operator: PlatformAccess, role: str) -> None:
    other = somebody(role)
    with pytest.raises(NotPermitted):
        set_it(other)
    with pytest.raises(NotPermitted):
        end_it(other, set_it(operator))
    with pytest.raises(NotPermitted):
        name_resource(
            access=other, resource="x.example/mig", device_class="gpu", request_id="r", now=NOON
        )


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        pytest.param({"device_class": "none"}, "device_class", id="a class that is not there"),
        pytest.param({"path": "train"}, "path", id="a path that is none"),
        pytest.param({"device_class": "bare"}, "path", id="a class that plugins cannot serve"),
        pytest.param({"tenant": "nobody"}, "tenant", id="an unknown tenant"),
        pytest.param({"template": "nothing"}, "template", id="an unknown template"),
        pytest.param({"reason": "  "}, "reason", id="no reason"),
        pytest.param({"until": NOON}, "until", id="an end that has passed"),
        pytest.param(
            {"starts_at": NOON + 2 * HOUR, "until": NOON + HOUR}, "until", id="an end too early"
        ),
    ],
)
def test_senseless_ones_are_refused(
    operator: PlatformAccess, asked: dict[str, Any], field: str
) -> None:
    with pytest.raises(Invalid) as refused:
        set_it(operator, **asked)
    assert set(refused.value.fields) == {field}
    assert not RouteRule.objects.exists()


def test_plugins_names_stand_for_classes(operator: PlatformAccess) -> None:
    by: dict[str, Any] = {"access": operator, "request_id": "r", "now": NOON}
    name_resource(resource="x.example/mig", device_class="gpu", **by)
    selector = "device.driver == 'x.example'"
    name_resource(resource="x.example/mig", device_class="bare", selector=selector, **by)
    (row,) = PluginResource.objects.all()
    assert (row.device_class, row.selector) == ("bare", selector)
    with pytest.raises(ResourceNamed):
        name_resource(resource=NAME, device_class="bare", **by)
    for wrong, field in (
        ({"resource": "cpu", "device_class": "gpu"}, "resource"),
        ({"resource": "x.example/y", "device_class": "none"}, "device_class"),
        ({"resource": "x.example/y", "device_class": "gpu", "selector": "device.("}, "selector"),
    ):
        with pytest.raises(Invalid) as refused:
            name_resource(**wrong, **by)
        assert set(refused.value.fields) == {field}
    forget_resource(resource="x.example/mig", **by)
    assert not PluginResource.objects.exists()


def test_rules_begin_and_end_by_themselves(operator: PlatformAccess) -> None:
    claim = make_claim(make_access())
    OutboxLine.objects.all().delete()
    set_it(operator, starts_at=NOON + HOUR, until=NOON + 3 * HOUR)
    assert rerouting.sweep(NOON) == 0 and woken() == []
    assert rerouting.sweep(NOON + HOUR) == 1 and woken() == [claim.public_id]
    assert rerouting.sweep(NOON + 2 * HOUR) == 0
    OutboxLine.objects.all().delete()
    assert rerouting.sweep(NOON + 3 * HOUR) == 1 and woken() == [claim.public_id]
    (rule,) = RouteRule.objects.all()
    assert rule.end == "expired" and not RouteRule.objects.standing(NOON + 2 * HOUR).exists()


# --- turns ----------------------------------------------------------------------------------------


@pytest.fixture
def access(place: str) -> Access:
    return make_access(namespaces=(place,))


def a_pod(claim: Claim, name: str = "p", *, node: str = "", phase: str = "Pending") -> Any:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": claim.namespace.name,
            "uid": f"{claim.public_id}-{name}",
            "labels": {"berth.dev/claim": claim.public_id},
            "creationTimestamp": "2026-11-02T12:00:00Z",
        },
        "spec": {
            **({"nodeName": node} if node else {}),
            "containers": [{"name": "main", "resources": {"limits": {NAME: "1"}}}],
        },
        "status": {"phase": phase},
    }


def turned(claim: Claim, gateway: Gateway) -> Claim:
    assert reconcile.turn(claim.public_id, gateway=gateway, now=NOON)
    return Claim.objects.whole().get(pk=claim.pk)


def template_of(claim: Claim, gateway: Gateway) -> Any:
    ref = Ref("ResourceClaimTemplate", claim.object_name, claim.namespace.name)
    return gateway.get(ref)


@pytest.mark.cluster
def test_on_the_plugins_route_nothing_is_made_and_pods_tell_the_rest(
    gateway: Gateway, access: Access, operator: PlatformAccess
) -> None:
    set_it(operator)
    claim = make_claim(access, make_version(content=GPU_CONTENT), values={"count": 2}, at_once=2)
    assert (claim.path, claim.resources) == (Path.PLUGIN, [[NAME, 2]])
    assert f"{NAME}: '2'" in manifests(claim.wish())[0].text
    claim = turned(claim, gateway)
    assert (claim.state, claim.code) == (State.APPLIED, "WAITING_FOR_POD")
    assert template_of(claim, gateway) is None
    pods = [a_pod(claim), a_pod(claim, "q", node="n1", phase="Running"), a_pod(claim, "r")]
    mirror(pods)
    claim = turned(claim, gateway)
    assert claim.state == State.IN_USE
    assert [pod["name"] for pod in claim.pods] == ["p", "q", "r"]
    beyond = outside_lines(access.tenant, timezone.now())
    assert {str(line.source) for line in beyond} == {f"more Pods than {claim.public_id} is for"}
    assert sorted(int(line.amount) for line in beyond) == [1, 2], "one Pod of 2, and its claim"
    release_claim(access=access, public_id=claim.public_id, request_id="r2", now=NOON)
    assert turned(claim, gateway).code == "IN_USE_UNTIL_PODS_END"
    assert BudgetLine.objects.filter(given_back_at=None).exists()
    mirror([{**pod, "status": {"phase": "Succeeded"}} for pod in pods])
    assert turned(claim, gateway).state == State.RELEASED
    assert not BudgetLine.objects.filter(given_back_at=None).exists()


@pytest.mark.cluster
def test_an_ask_without_pods_follows_there_and_back(
    gateway: Gateway, access: Access, operator: PlatformAccess
) -> None:
    claim = turned(make_claim(access), gateway)
    assert template_of(claim, gateway) is not None
    rule = set_it(operator)
    claim = turned(claim, gateway)
    assert (claim.path, claim.state) == (Path.PLUGIN, State.APPLIED)
    assert template_of(claim, gateway) is None, "what was made for the other path is taken away"
    event = ClaimEvent.objects.filter(code="ROUTE_CHANGED").get()
    assert "Pool 3 is moved." in event.text
    alert = Alert.objects.get(code="ROUTE_CHANGED")
    assert (alert.person, alert.over_at) == (claim.asked_by, None)
    claim = turned(claim, gateway)
    assert ClaimEvent.objects.filter(code="ROUTE_CHANGED").count() == 1, "told once"
    end_it(operator, rule)
    claim = turned(claim, gateway)
    assert (claim.path, claim.state) == (Path.CLAIM, State.APPLIED)
    assert template_of(claim, gateway) is not None, "made anew, not deleted outside"


@pytest.mark.cluster
def test_a_pod_that_names_a_claim_cannot_follow(
    gateway: Gateway, access: Access, operator: PlatformAccess
) -> None:
    claim = turned(make_claim(access), gateway)
    mirror([a_pod(claim)])
    set_it(operator)
    claim = turned(claim, gateway)
    assert (claim.path, claim.state, claim.code) == (Path.CLAIM, State.PENDING, "ROUTE_CHANGED")
    assert "device plugin" in claim.why and template_of(claim, gateway) is not None
    mirror([{**a_pod(claim), "status": {"phase": "Failed"}}])
    assert turned(claim, gateway).path == Path.PLUGIN, "it follows once its Pod has ended"


def test_the_form_says_what_the_plugin_has_where_new_work_goes_that_way(
    operator: PlatformAccess, client: Client
) -> None:
    access = make_access()
    make_version(content=GPU_CONTENT)
    mirror([])
    set_it(operator)
    client.force_login(access.user)
    page = client.get("/t/tidewater/ask/gpu/").text
    assert "By the device plugin: 8 of 8" in page and "Pool 3 is moved." in page
    assert f"{NAME}: &#x27;1&#x27;" in page, "the snippet follows the route"
