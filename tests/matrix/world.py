"""The little world that the matrix asks about: one of everything, and somebody of every kind."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from allauth.usersessions.models import UserSession
from django.test import Client
from django.utils import timezone

from devices.authoring import dryruns
from devices.models import (
    ClassWords,
    DriverRights,
    Inventory,
    Isolation,
    LeakRow,
    LedgerNode,
    LedgerRollout,
    NodePool,
    OwnershipLine,
)
from devices.tenancy.freezes import freeze
from migrationplan.models import Move
from portal.approvals.delegations import delegate
from tenants import grants
from tenants.access import platform_of, tenant_for
from tenants.members import invite
from tenants.models import GroupRole
from tenants.tokens import make_token
from tests.devices import templatelife
from tests.devices.demofleet import mirror
from tests.factories import make_claim, make_person, make_tenant, make_version
from tests.matrix.callers import browser, on_platform, program
from tests.matrix.things import REQUEST, closings, kept, plans, readings, routing, telling
from tests.portal.test_approvals import an_approval

#: A class, and a node with one device of it.
MACHINE: list[dict[str, Any]] = [
    {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"},
     "spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.example'"}}]}},
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}},
    {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "slice-1"},
     "spec": {"driver": "gpu.example", "nodeName": "node-1", "devices": [{"name": "gpu-0"}],
              "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1}}},
]  # fmt: skip


@dataclass
class World:
    """Callers by kind, and what stands in the place of a route's parameters.

    `values` are by parameter name, or by parameter name and the route's beginning where one name
    means several things; the longest beginning counts.
    """

    callers: dict[str, Callable[[], Client]] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)

    def path(self, route: str) -> str:
        """The route with real things in it; KeyError names the parameter that nobody made."""

        def real(found: re.Match[str]) -> str:
            name = found[1]
            special = [
                key
                for key in self.values
                if key.startswith(f"{name} ") and route.startswith(key.partition(" ")[2])
            ]
            return self.values[max(special, key=len, default=name)]

        return "/" + re.sub(r"<\w+:(\w+)>", real, route.lstrip("/"))


def build() -> World:
    """Makes everything anew; call it in a transaction that is rolled back."""
    world, now = World(), timezone.now()
    tenant = make_tenant("tidewater", limits={"gpu": 8})
    other = make_tenant("basalt", ("basalt-pipelines",), {"gpu": 8})
    people = {
        "owner": make_person("rosa", tenant, "owner"),
        "member": make_person("tim", tenant, "member"),
        "viewer": make_person("iris", tenant, "viewer"),
        "stranger": make_person("basil", other, "owner"),
        **{role: on_platform(role) for role in ("operator", "auditor", "approver", "admin")},
    }
    for kind, user in people.items():
        world.callers[kind] = browser(user)
    world.callers["anonymous"] = Client
    access = tenant_for(people["owner"], "tidewater")
    world.callers["expired"] = program(access, "read", "request", late=True)
    world.callers["reads"] = program(access, "read")
    world.callers["asks"] = program(access, "request")

    claim = make_claim(access, make_version(), now=now)
    approval = an_approval(author=people["member"].person, now=now)
    invitation = invite(
        access=access,
        role="member",
        note="Tansy",
        lasts=timedelta(days=1),
        now=now,
        request_id=REQUEST,
    )
    loan = delegate(
        lender=people["approver"].person,
        borrower=people["operator"].person,
        starts_at=now,
        ends_at=now + timedelta(days=1),
        request_id=REQUEST,
        now=now,
    )
    token = make_token(
        access=access,
        name="nightly",
        scopes=["read"],
        expires_at=now + timedelta(days=1),
        now=now,
        request_id=REQUEST,
    )
    grant = grants.offer(
        access=access,
        namespace="basalt-pipelines",
        template="gpu",
        device_class="gpu",
        count=1,
        pays="giver",
        ends_at=now + timedelta(days=1),
        words="for the review",
        request_id=REQUEST,
        now=now,
    )
    lent = grants.offer(
        access=tenant_for(people["stranger"], "basalt"),
        namespace="tidewater-train",
        template="gpu",
        device_class="gpu",
        count=1,
        pays="giver",
        ends_at=now + timedelta(days=1),
        words="",
        request_id=REQUEST,
        now=now,
    )
    frozen = freeze(
        access=platform_of(people["operator"]),
        scope="tenant",
        target="basalt",
        strict=False,
        reason="Firmware",
        until=now + timedelta(days=1),
        request_id=REQUEST,
        now=now,
    )
    drafted = templatelife.begin("drafted", access=platform_of(people["operator"]))
    tried = dryruns.ask(
        [],
        about="drafted",
        person=people["operator"].person,
        request_id=REQUEST,
        now=now,
    )
    group = GroupRole.objects.create(group="sre", role="operator")
    ClassWords.objects.create(device_class="nic", display_name="Port")
    session = UserSession.objects.create(
        user=people["owner"], ip="192.0.2.1", session_key="of-the-owner", user_agent="a browser"
    )
    TOTP.activate(people["owner"], generate_totp_secret())
    RecoveryCodes.activate(people["owner"])
    pool = NodePool.objects.create(
        slug="l40s", name="L40S", selector={"pool": "l40s"}, resource="a.example/gpu",
        driver="gpu.a.example", device_class="gpu", plugin_label="p=on", driver_label="d=on",
        made_by=people["operator"].person, made_at=now,
    )  # fmt: skip
    move = Move.objects.create(
        pool=pool, node="n1", node_uid="u", direction="to DRA", since=now, begun_at=now,
        begun_by=people["operator"].person, request_id=REQUEST, called="CONVERSION_TIMED_OUT",
    )  # fmt: skip
    keeps = kept(people["operator"], pool, claim, now)
    LedgerNode.objects.create(node="n1", state="safe", since=now)
    DriverRights.objects.create(at=now)
    rolled = LedgerRollout.objects.create(
        canaries=["n1"], soak=timedelta(hours=1), since=now, started_at=now, why="Begun.",
        started_by=people["operator"].person,
    )  # fmt: skip
    OwnershipLine.objects.create(node="n1", type="gpu", owner="dra", published=8, since=now)
    planned, entry = plans(people["operator"], pool, now)
    Inventory.objects.create(
        pool=pool, number=1, state="approved", source="imported", note="As delivered",
        made_by=people["operator"].person, made_at=now, request_id=REQUEST,
    )  # fmt: skip
    isolated = Isolation.objects.create(
        driver="gpu.example",
        pool="node-1",
        node="node-1",
        evidence={"failed": 3, "tried": 3, "others_failed": 0, "others_tried": 9, "chance": 0.01,
                  "codes": {"PREPARE_FAILED": 3}, "pods": ["a/p"], "words": ["no"]},
        why="3 of 3 Pods could not be prepared here, 0 of 9 elsewhere.",
        proposed_at=now,
        since=now,
        request_id=REQUEST,
    )  # fmt: skip
    leak = LeakRow.objects.create(
        key="k", code="LEAK_UNRESERVED", claims=["tide/gpu-0"], uid="u", first_seen_at=now,
        seen_at=now,
    )  # fmt: skip
    told = telling(people["operator"], now)
    routed = routing(people, tenant, now)
    mirror(MACHINE)
    world.values = {
        "name t/<slug:slug>/catalogue": "gpu",
        "name platform/catalogue": "gpu",
        "name api/v1/tenants/<slug:slug>/classes": "gpu",
        "name api/v1/platform/classes": "gpu",
        "name t/<slug:slug>/nodes": "node-1",
        "name platform/nodes": "node-1",
        "name api/v1/tenants/<slug:slug>/nodes": "node-1",
        "name api/v1/platform/nodes": "node-1",
        "driver": "gpu.example",
        "pool": "node-1",
        "device": "gpu-0",
        "component": "scheduler",
        "gate": "DRAConsumableCapacity",
        "slug": "tidewater",
        "name": "tidewater-train",
        "code": "SEARCH_TOO_LONG",
        **closings(people["admin"], people["owner"], now),
        "template": "gpu",
        "public_id": claim.public_id,
        "public_id t/<slug:slug>/grants": grant.public_id,
        "public_id api/v1/tenants/<slug:slug>/grants": grant.public_id,
        "public_id api/v1/tenants/<slug:slug>/grants/<slug:public_id>/accept": lent.public_id,
        "public_id api/v1/tenants/<slug:slug>/grants/<slug:public_id>/decline": lent.public_id,
        "public_id platform/freezes": frozen.public_id,
        "public_id api/v1/platform/freezes": frozen.public_id,
        "public_id platform/dry-runs": tried.public_id,
        "public_id api/v1/platform/dry-runs": tried.public_id,
        "slug platform/templates": drafted.template.slug,
        "slug api/v1/platform/templates": drafted.template.slug,
        "number": approval.number,
        "number platform/templates": "1",
        "number api/v1/platform/templates": "1",
        "username": "tim",
        "username platform/people": "iris",
        "username api/v1/platform/people": "iris",
        "username platform/roles": "operator",
        "username api/v1/platform/roles": "operator",
        "role": "operator",
        "prefix": invitation.row.prefix,
        "prefix account/tokens": token.row.prefix,
        "pk": str(loan.pk),
        "pk platform/groups": str(group.pk),
        "pk api/v1/platform/groups": str(group.pk),
        "pk account/sessions": str(session.pk),
        "provider_id": "company",
        **told,
        **routed,
        "public_id platform/leaks": leak.public_id,
        "public_id platform/isolations": isolated.public_id,
        "number platform/node-pools": "1",
        "number api/v1/platform/node-pools": "1",
        "public_id api/v1/platform/isolations": isolated.public_id,
        "node platform/ledger/nodes": "n1",
        "node api/v1/platform/ledger/nodes": "n1",
        "public_id platform/ledger/rollout": rolled.public_id,
        "public_id api/v1/platform/ledger/rollouts": rolled.public_id,
        "what": "stop",
        "node platform/ownership": "n1",
        **readings(pool, people["operator"], now),
        **keeps,
        "public_id platform/moves": move.public_id,
        "public_id api/v1/platform/moves": move.public_id,
        "public_id platform/plans": planned.plan.public_id,
        "public_id api/v1/platform/plans": planned.plan.public_id,
        "position": "1",
        "slug platform/strategies": "usual",
        "slug api/v1/platform/strategies": "usual",
        "public_id platform/plan-calendar": entry.public_id,
        "public_id api/v1/platform/plan-calendar": entry.public_id,
        "view": "nightly",
        "slug platform/node-pools": "l40s",
        "slug api/v1/platform/node-pools": "l40s",
        "public_id api/v1/platform/leaks": leak.public_id,
    }
    return world
