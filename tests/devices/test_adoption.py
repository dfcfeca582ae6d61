"""Namespaces of tenants: what is in one before it is adopted, and who may give and take them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.http import Http404
from django.test.utils import CaptureQueriesContext

from devices.models import Claim, Observed, Sync
from devices.tenancy.adoption import (
    ClusterNotSeen,
    NamespaceInUse,
    NotAdoptable,
    TenantNotActive,
    add_namespace,
    remove_namespace,
    survey_of,
)
from portal.audit.models import AuditLine
from portal.errors import Invalid, NotPermitted
from portal.outbox.models import OutboxLine
from tenants.access import PlatformAccess, tenant_for
from tenants.models import Tenant, TenantNamespace
from tests.deploy.objects import claim, pod, request, template
from tests.factories import NOON, make_claim, make_person, make_tenant, make_version

ISOLATED = {"key": "berth.dev/isolated", "operator": "Exists"}

pytestmark = pytest.mark.django_db
KINDS = (
    "DeviceClass",
    "Namespace",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "ResourceQuota",
    "Pod",
)
Obj = dict[str, Any]


def observed(obj: Obj, namespace: str = "lab") -> Observed:
    kind, name = obj["kind"], obj["metadata"]["name"]
    return Observed.objects.create(
        uid=f"{kind}-{namespace}-{name}",
        kind=kind,
        api_version=obj.get("apiVersion", "v1"),
        namespace="" if kind in {"Namespace", "DeviceClass"} else namespace,
        name=name,
        resource_version="1",
        raw=json.dumps(obj).encode(),
        seen_at=NOON,
    )


@pytest.fixture
def seen() -> None:
    """The mirror was listed; it has a class with an extended resource, and the namespace lab."""
    for kind in KINDS:
        Sync.objects.create(kind=kind, listed_at=NOON, alive_at=NOON)
    spec = {"extendedResourceName": "example.com/gpu"}
    observed({"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": spec})
    observed({"kind": "DeviceClass", "metadata": {"name": "nic"}, "spec": {}})
    observed({"kind": "Namespace", "metadata": {"name": "lab", "labels": {"team": "x"}}})


@pytest.fixture
def tenant() -> Tenant:
    return make_tenant("tidewater", (), {"gpu": 2})


@pytest.fixture
def admin() -> PlatformAccess:
    return PlatformAccess(make_person("ada"), frozenset({"admin"}))


def add(admin: PlatformAccess, tenant: Tenant, name: str, *, adopt: bool) -> TenantNamespace:
    return add_namespace(
        access=admin, tenant=tenant, name=name, adopt=adopt, request_id="request-n", now=NOON
    )


def named(survey: Any) -> list[tuple[str, str]]:
    return [(one.code, one.subject) for one in survey.clashes]


@pytest.mark.usefixtures("seen")
@pytest.mark.parametrize(
    ("obj", "clash"),
    [
        pytest.param(claim("a", request("gpu")), None, id="a claim of a class that is allowed"),
        pytest.param(
            claim("a", request("nic")),
            ("CLASS_NOT_ALLOWED", "ResourceClaim a"),
            id="a claim of a class that is not",
        ),
        pytest.param(
            template("a", request("gpu", "nic")),
            ("CLASS_NOT_ALLOWED", "ResourceClaimTemplate a"),
            id="a template with an alternative that is not",
        ),
        pytest.param(
            claim("a", request("gpu", adminAccess=True)),
            ("ADMIN_ACCESS", "ResourceClaim a"),
            id="administrative access",
        ),
        pytest.param(
            template("a", request("gpu"), of_claims={"labels": {"berth.dev/claim": "x"}}),
            ("OWN_NAMES", "ResourceClaimTemplate a"),
            id="Berth's names on the claims of a template",
        ),
        pytest.param(
            claim("a", request("gpu", count=3)),
            ("OVERDRAWN", "Limit of devices of gpu"),
            id="more devices than the tenant's limit",
        ),
        pytest.param(
            {"kind": "ResourceQuota", "metadata": {"name": "berth"}, "spec": {"hard": {"pods": 1}}},
            ("QUOTA_REPLACED", "ResourceQuota berth"),
            id="a quota of the name that Berth's has",
        ),
        pytest.param(
            {"kind": "ResourceQuota", "metadata": {"name": "mine"}, "spec": {}},
            None,
            id="a quota of another name",
        ),
        pytest.param(
            pod("p", limits={"example.com/gpu": "1"}),
            None,
            id="a Pod with an extended resource that is allowed",
        ),
        pytest.param(
            pod("p", limits={"deviceclass.resource.kubernetes.io/nic": "1"}),
            ("CLASS_NOT_ALLOWED", "Pod p"),
            id="a Pod with an implicit one that is not",
        ),
        pytest.param(
            pod("p", claims={"c": "a"}, tolerations=[{"operator": "Exists"}]),
            ("QUIESCING_TOLERATED", "Pod p"),
            id="a Pod that tolerates every taint",
        ),
        pytest.param(
            pod("p", claims={"c": "a"}, tolerations=[ISOLATED]),
            ("QUIESCING_TOLERATED", "Pod p"),
            id="a Pod that tolerates nodes that keep failing",
        ),
        pytest.param(
            claim("a", request("gpu", tolerations=[ISOLATED])),
            ("ISOLATION_TOLERATED", "ResourceClaim a"),
            id="a claim that tolerates devices that keep failing",
        ),
        pytest.param(
            claim("a", request("gpu", tolerations=[{"key": "gpu.example.com/hot"}])),
            None,
            id="a claim that tolerates a taint of its driver's",
        ),
        pytest.param(
            pod("p", tolerations=[{"operator": "Exists"}]), None, id="one without devices"
        ),
        pytest.param(
            {"kind": "ResourceClaim", "metadata": {"name": "a"}, "spec": {"devices": 7}},
            ("UNREADABLE", "ResourceClaim a"),
            id="what cannot be read is named",
        ),
    ],
)
def test_a_survey_names_what_would_be_refused(
    tenant: Tenant, obj: Obj, clash: tuple[str, str] | None
) -> None:
    observed(obj)
    found = survey_of(tenant, "lab", NOON)
    assert named(found) == ([clash] if clash else [])
    assert found.stops == ()


@pytest.mark.usefixtures("seen")
def test_a_survey_says_by_whom_things_were_made_and_leaves_out_what_uses_no_device(
    tenant: Tenant,
) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "controller": True}
    observed(pod("web-1", claims={"c": "a"}, metadata={"ownerReferences": [owner | {"uid": "u"}]}))
    observed(pod("plain"))
    observed(claim("a", request("gpu"), labels={"app.kubernetes.io/managed-by": "Helm"}))
    observed(claim("b", request("gpu")))
    found = survey_of(tenant, "lab", NOON)
    assert [(one.kind, one.name, one.made_by) for one in found.things] == [
        ("Pod", "web-1", "ReplicaSet web"),
        ("ResourceClaim", "a", "Helm"),
        ("ResourceClaim", "b", ""),
    ]
    assert (found.devices, found.claims) == ({"gpu": 2}, 2)


@pytest.mark.usefixtures("seen")
def test_a_survey_costs_the_same_however_much_is_there(tenant: Tenant) -> None:
    observed(claim("a", request("gpu")))
    with CaptureQueriesContext(connection) as few:
        survey_of(tenant, "lab", NOON)
    for number in range(12):
        observed(claim(f"c{number}", request("gpu")))
        observed(pod(f"p{number}", claims={"c": f"c{number}"}))
    with CaptureQueriesContext(connection) as many:
        survey_of(tenant, "lab", NOON)
    assert len(many) == len(few)


@pytest.mark.usefixtures("seen")
def test_adopting_records_what_was_found_and_promises_a_turn(
    tenant: Tenant, admin: PlatformAccess
) -> None:
    observed(claim("a", request("nic")))
    place = add(admin, tenant, "lab", adopt=True)
    assert place.adopted
    assert OutboxLine.objects.get().key == "tidewater"
    line = AuditLine.objects.get(action="namespace.adopted")
    assert line.facts == {"found": {"ResourceClaim": 1}, "clashes": 1}


def is_absent() -> str:
    return "nowhere"


def is_leaving() -> str:
    gone = {"name": "going", "deletionTimestamp": "2026-11-02T11:00:00Z"}
    observed({"kind": "Namespace", "metadata": gone})
    return "going"


def is_anothers_label() -> str:
    labels = {"berth.dev/tenant": "basalt"}
    observed({"kind": "Namespace", "metadata": {"name": "theirs", "labels": labels}})
    return "theirs"


def is_anothers_row() -> str:
    observed({"kind": "Namespace", "metadata": {"name": "basalt-runs"}})
    make_tenant("basalt", ("basalt-runs",))
    return "basalt-runs"


@pytest.mark.usefixtures("seen")
@pytest.mark.parametrize(
    ("situation", "code"),
    [
        pytest.param(is_absent, "NAMESPACE_MISSING", id="there is none"),
        pytest.param(is_leaving, "NAMESPACE_LEAVING", id="it is being deleted"),
        pytest.param(is_anothers_label, "NAMESPACE_OF_ANOTHER", id="labelled as another's"),
        pytest.param(is_anothers_row, "NAMESPACE_TAKEN", id="another tenant has it"),
    ],
)
def test_what_cannot_be_adopted_says_why(
    tenant: Tenant, admin: PlatformAccess, situation: Any, code: str
) -> None:
    name = situation()
    assert code in {one.code for one in survey_of(tenant, name, NOON).stops}
    with pytest.raises(NotAdoptable) as refused:
        add(admin, tenant, name, adopt=True)
    assert refused.value.facts["reason"] == code


@pytest.mark.usefixtures("seen")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        pytest.param("Lab", "lower-case", id="a name that Kubernetes refuses"),
        pytest.param("kube-system", "belongs to Kubernetes", id="one of Kubernetes' own"),
        pytest.param("berth-system", "belongs to Kubernetes", id="Berth's own"),
        pytest.param("lab", "adopt it", id="one that is there: it has to be adopted"),
        pytest.param("basalt-runs", "has this namespace", id="another tenant's"),
    ],
)
def test_what_cannot_be_made_says_why(
    tenant: Tenant, admin: PlatformAccess, name: str, said: str
) -> None:
    make_tenant("basalt", ("basalt-runs",))
    with pytest.raises(Invalid) as refused:
        add(admin, tenant, name, adopt=False)
    assert said in refused.value.fields["name"]


def test_before_the_cluster_was_seen_nothing_is_adopted(
    tenant: Tenant, admin: PlatformAccess
) -> None:
    with pytest.raises(ClusterNotSeen):
        add(admin, tenant, "lab", adopt=True)


def test_only_admins_may(tenant: Tenant) -> None:
    operator = PlatformAccess(make_person("omar"), frozenset({"operator"}))
    with pytest.raises(NotPermitted):
        add(operator, tenant, "fresh", adopt=False)


@pytest.mark.parametrize("state", ["closing", "closed"])
def test_a_tenant_that_is_closed_gets_none(
    tenant: Tenant, admin: PlatformAccess, state: str
) -> None:
    Tenant.objects.update(state=state)
    with pytest.raises(TenantNotActive):
        add(admin, tenant, "fresh", adopt=False)


def test_a_namespace_leaves_once_nothing_is_asked_for_there(admin: PlatformAccess) -> None:
    tenant = make_tenant("tidewater", ("tide",))
    access = tenant_for(make_person("rosa", tenant, "owner"), "tidewater")
    version = make_version()
    made = make_claim(access, version)

    def remove() -> TenantNamespace:
        return remove_namespace(
            access=admin, tenant=tenant, name="tide", request_id="request-r", now=NOON
        )

    with pytest.raises(NamespaceInUse) as refused:
        remove()
    assert refused.value.facts["claims"] == [made.public_id]
    Claim.objects.update(state="released", released_at=NOON)
    first, again = remove(), remove()
    assert first.leaving_at == again.leaving_at == NOON
    with pytest.raises(Invalid) as no:
        make_claim(access, version, name="more")
    assert "namespace" in no.value.fields
    assert AuditLine.objects.filter(action="namespace.removed").count() == 1


def test_a_strangers_namespace_is_not_found(tenant: Tenant, admin: PlatformAccess) -> None:
    make_tenant("basalt", ("basalt-runs",))
    with pytest.raises(Http404):
        remove_namespace(
            access=admin, tenant=tenant, name="basalt-runs", request_id="request-r", now=NOON
        )
