"""What stands in the matrix's world beside people: plans, readings, routes, closings, alerts."""

from __future__ import annotations

import hashlib
import zlib
from datetime import datetime, timedelta
from typing import Any

from devices.dra.closing import Phase
from devices.models import Claim, Closure, NodePool, Offer, Proof
from devices.routing.rerouting import name_resource, set_route
from devices.tenancy import closures
from devices.tenancy.closing import move
from migrationplan.evidence.collecting import collect
from migrationplan.gates import Samples
from migrationplan.gating.judging import canonical
from migrationplan.models import (
    CalendarFreeze,
    Drill,
    Gate,
    MakeRoom,
    Plan,
    Reading,
    Wave,
    WaveNode,
)
from migrationplan.plans import calendar, strategies
from migrationplan.plans.wishes import WaveWish
from portal.alerts import channels
from portal.alerts.raising import About, raise_alert
from portal.alerts.rules import Match, Medium
from tenants.access import platform_of
from tenants.models import Membership, Tenant, User
from tests.factories import make_tenant

REQUEST = "request-0001"
#: Public id of a channel, for bodies that name one.
CHANNEL = "c0ffee000000"


def readings(pool: NodePool, by: User, now: datetime) -> dict[str, str]:
    """A gate and what it said of a node; as `World.values`."""
    gate = Gate.objects.create(
        slug="drift", name="Drift", measure="drift", patience=timedelta(minutes=10),
        made_by=by.person, made_at=now,
    )  # fmt: skip
    samples = canonical(Samples())
    row = Reading.objects.create(
        at=now, pool=pool, direction="to DRA", moved=[["n1", now.isoformat()]], nodes=["n1"],
        since=now, gate=gate.slug, name=gate.name, measure=gate.measure, settings=gate.settings(),
        verdict="pass", sentence="None.",
        figures={"moved": {"samples": 1, "bad": 0}, "others": {"samples": 0, "bad": 0}},
        samples=zlib.compress(samples), digest=hashlib.sha256(samples).hexdigest(),
    )  # fmt: skip
    return {
        "slug platform/gates": gate.slug,
        "slug api/v1/platform/gates": gate.slug,
        "public_id platform/readings": row.public_id,
        "public_id api/v1/platform/readings": row.public_id,
    }


def routing(people: dict[str, User], tenant: Tenant, now: datetime) -> dict[str, str]:
    """A path that is set for new work, a plugin's name, and a proof of the owner's; as
    `World.values`.
    """
    figures = ("total", "free", "allocated", "shared", "fragmented", "unavailable", "unknown")
    plugin = {"resource": "x.example/gpu", "allocatable": 2, "requested": 0, "nodes": 1}
    counts = {**dict.fromkeys(figures, 0), "plugin": plugin}
    Offer.objects.create(device_class="gpu", counts=counts, counted_at=now)
    by: Any = {"access": platform_of(people["operator"]), "request_id": REQUEST, "now": now}
    rule = set_route(device_class="gpu", path="claim", tenant="basalt", reason="Firmware", **by)
    named = name_resource(resource="x.example/gpu.shared", device_class="gpu", **by)
    proof = Proof.objects.create(
        tenant=tenant, asked_by=people["owner"].person, asked_at=now, request_id="r", questions=[]
    )  # fmt: skip
    return {
        "public_id platform/routes": rule.public_id,
        "public_id api/v1/platform/routes": rule.public_id,
        "pk platform/resources": str(named.pk),
        "public_id t/<slug:slug>/translate/proofs": proof.public_id,
        "public_id api/v1/tenants/<slug:slug>/translations/proofs": proof.public_id,
    }


def plans(operator: User, pool: NodePool, now: datetime) -> tuple[Wave, CalendarFreeze]:
    """A strategy, a plan of one running wave with a node, and an entry of the freeze calendar."""
    by: Any = {"access": platform_of(operator), "request_id": REQUEST, "now": now}
    strategies.define("usual", name="Usual", words="", waves=(WaveWish("All"),), **by)
    plan = Plan.objects.create(
        name="L40S to DRA", made_by=operator.person, made_at=now, request_id=REQUEST
    )
    plan.pools.add(pool)
    wave = Wave.objects.create(plan=plan, position=1, name="All", since=now, phase="running")
    WaveNode.objects.create(wave=wave, pool=pool, node="n1", node_uid="u", position=1)
    ends = now + timedelta(days=1)
    return wave, calendar.enter(reason="Year's end", begins=now, ends=ends, pools=[], **by)


def closings(admin: User, owner: User, now: datetime) -> dict[str, str]:
    """A tenant that is being closed, and one of `owner` that is closed; as `World.values`."""
    access = platform_of(admin)
    for slug in ("ebb", "gone"):
        closures.begin(
            access=access,
            tenant=make_tenant(slug, ()),
            reason="Over",
            typed=slug,
            deadline=None,
            request_id=REQUEST,
            now=now,
        )
    closure = Closure.objects.get(tenant__slug="gone")
    Membership.objects.create(tenant=closure.tenant, user=owner, role="owner")
    for phase in (Phase.WAITING, Phase.RECLAIMING, Phase.LETTING_GO, Phase.CLOSED):
        closure.refresh_from_db()
        assert move(closure, phase, now)
    one = "platform/tenants/<slug:slug>"
    return {
        f"slug api/v1/{one}/closing": "ebb",
        f"slug {one}/closing/cancel": "ebb",
        f"slug api/v1/{one}/receipt": "gone",
        f"slug {one}/receipt": "gone",
        "slug api/v1/tenants/<slug:slug>/receipt": "gone",
        "slug t/<slug:slug>/receipt": "gone",
    }


def telling(operator: User, now: datetime) -> dict[str, str]:
    """An alert of the tenant that is told on a channel, and a silence; as `World.values`."""
    by: Any = {"person": operator.person, "request_id": REQUEST, "now": now}
    channel = channels.add_channel(
        name="pager", medium=Medium.WEBHOOK, address="https://example.org/hook", **by
    )
    channel.public_id = CHANNEL
    channel.save()
    route = channels.add_route(
        match=Match(), channel=channel, then=None, after=None, tells_end=True, **by
    )
    about = About("PREPARE_FAILED", "claim a", "It cannot be prepared", tenant="tidewater")
    alert = raise_alert(about, now=now)
    silence = channels.silence(
        match=Match(code="LEAKED"), reason="Moving", until=now + timedelta(hours=1), **by
    )
    values = {
        "public_id {}alerts": alert.public_id,
        "public_id {}platform/alerts/channels": CHANNEL,
        "public_id {}platform/alerts/silences": silence.public_id,
        "message_id {}platform/alerts": str(alert.deliveries.get().message_id),
        "pk {}platform/alerts": str(route.pk),
    }
    return {key.format(root): value for key, value in values.items() for root in ("", "api/v1/")}


def kept(by: User, pool: NodePool, claim: Claim, now: datetime) -> dict[str, str]:
    """A bundle of evidence, a drill under way and room that is made."""
    bundle = collect(pool, [], now - timedelta(hours=1), now, why="review", now=now,
                     request_id=REQUEST, person=by.person)  # fmt: skip
    drill = Drill.objects.create(
        pool=pool, kind="driver restart", node="n1", node_uid="u-drill", begun_by=by.person,
        begun_at=now, request_id=REQUEST, since=now,
    )  # fmt: skip
    room = MakeRoom.objects.create(
        claim=claim, priority=1, node="n1", devices=[], holders=[], takes=timedelta(seconds=30),
        reason="a deadline", asked_by=by.person, asked_at=now, request_id=REQUEST,
        leave="its own", state="evicting", since=now,
    )  # fmt: skip
    return {
        f"public_id {place}platform/{name}": row.public_id
        for place in ("", "api/v1/")
        for name, row in (("evidence", bundle), ("drills", drill), ("rooms", room))
    }
