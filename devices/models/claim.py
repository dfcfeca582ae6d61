"""Asks of tenants and what became of them."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models, transaction
from django.db.models import F, Q

from devices.dra.lifecycle import ENDED, State, moves
from devices.dra.objects import ClaimWish, ConfigWish, DeviceWish, MatchWish, Shape
from devices.models.lease import Leased
from devices.models.template import TemplateVersion
from devices.routing.routes import Path
from tenants.models import Tenant, TenantNamespace

ID_LETTERS = "bcdfghjkmnpqrstvwxz23456789"
LEASE = timedelta(seconds=30)


def new_public_id() -> str:
    """Eight letters and digits that spell no word and are hard to misread."""
    return "".join(secrets.choice(ID_LETTERS) for _ in range(8))


STATES = [(state, state) for state in State]


class ClaimQuerySet(models.QuerySet["Claim"]):
    """Questions that every page, API call and task asks."""

    def of(self, tenant: Tenant) -> ClaimQuerySet:
        return self.filter(tenant=tenant)

    def whole(self) -> ClaimQuerySet:
        """With the rows that everything shown of an ask needs, in the same query."""
        return self.select_related("tenant", "namespace", "version__template")

    def listed(self) -> ClaimQuerySet:
        """The same with those columns alone that a list by API tells: what stands in a template is
        long, and each row would bring it along.
        """
        return self.whole().only(
            "public_id", "name", "values", "words", "at_once", "shape", "object_name", "state",
            "since", "code", "why", "placed", "node", "pods", "path", "resources", "route_why",
            "requested_at", "expires_at", "released_at", "note", "request_id", "revision",
            "tenant__slug", "namespace__name", "version__number", "version__template__slug",
        )  # fmt: skip

    def open(self) -> ClaimQuerySet:
        """Asks of which something may still be in the cluster."""
        return self.exclude(state__in=ENDED)


class Claim(Leased):
    """One ask of one tenant. What was asked for never changes: to change is to release and ask."""

    lease_time = LEASE

    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="claims")
    namespace = models.ForeignKey(TenantNamespace, on_delete=models.PROTECT, related_name="claims")
    name = models.CharField(max_length=63, help_text="As the person named it.")
    object_name = models.CharField(max_length=63, help_text="As the cluster knows it.")
    shape = models.CharField(max_length=8, choices=[(shape, shape) for shape in Shape])
    version = models.ForeignKey(TemplateVersion, on_delete=models.PROTECT, related_name="claims")
    values = models.JSONField(help_text="The answers given, by parameter.")
    devices = models.JSONField(help_text="Requests built from the answers.")
    matches = models.JSONField(default=list)
    configs = models.JSONField(default=list, help_text="Settings for drivers.")
    classes = ArrayField(
        models.CharField(max_length=253),
        default=list,
        help_text="Device classes that its requests name, sorted.",
    )
    at_once = models.PositiveSmallIntegerField(
        default=1, help_text="How many Pods may use a template at the same time."
    )
    words = models.CharField(max_length=240, help_text="What was asked for, in words.")
    asked_by = models.UUIDField(help_text="Opaque person id.")
    form = models.CharField(
        max_length=36, blank=True, help_text="The page it was asked with: it asks once."
    )
    request_id = models.CharField(max_length=64)
    requested_at = models.DateTimeField()
    released_at = models.DateTimeField(
        null=True, help_text="When a person asked to release it, or its time was over."
    )
    expires_at = models.DateTimeField(
        null=True, help_text="When Berth releases it by itself; empty: when a person does."
    )
    warned = models.PositiveSmallIntegerField(
        null=True, help_text="Days before its end of the last warning that is over."
    )
    expired = models.BooleanField(default=False, help_text="Its time was over.")
    note = models.CharField(
        max_length=240, blank=True, help_text="What it is for, as its tenant wrote it."
    )

    path = models.CharField(
        max_length=8, choices=[(path.value, path.words) for path in Path], default=Path.CLAIM.value
    )
    resources = models.JSONField(
        default=list, help_text="Where Pods ask by name instead: names and how many of each."
    )
    route_why = models.TextField(blank=True, help_text="Why it takes this path.")
    ruled_by = models.CharField(
        max_length=240, blank=True, help_text="Ids of the route rules that the path was found by."
    )

    state = models.CharField(max_length=9, choices=STATES, default=State.REQUESTED)
    since = models.DateTimeField(help_text="Start of the state.")
    code = models.CharField(max_length=48, blank=True)
    why = models.TextField(blank=True)
    placed = models.JSONField(default=list, help_text="Devices held: request, driver, pool, name.")
    node = models.CharField(max_length=253, blank=True)
    pods = models.JSONField(default=list, help_text="Pods that use it: name, phase, ready.")
    object_uid = models.CharField(max_length=64, blank=True, help_text="Once it was applied.")
    sent_from = models.CharField(
        max_length=64, blank=True, help_text="The cluster's version before it was first applied."
    )
    revision = models.PositiveIntegerField(default=1)

    objects = ClaimQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        indexes = [
            models.Index(fields=["tenant", "-id"]),
            models.Index(fields=["looked_at"], condition=~Q(state="released"), name="claims_open"),
            models.Index(
                fields=["expires_at"], condition=Q(released_at=None), name="claims_that_end"
            ),
            GinIndex(fields=["classes"], name="claims_by_class"),
            # What lists are narrowed and sorted by (tests/bench/test_list_numbers.py measures it).
            models.Index(
                fields=["tenant", "-id"], condition=~Q(state="released"), name="claims_open_list"
            ),
            models.Index(fields=["tenant", "state", "-id"], name="claims_by_state"),
            models.Index(fields=["tenant", "asked_by", "-id"], name="claims_by_person"),
            models.Index(fields=["tenant", "name", "id"], name="claims_by_name"),
            models.Index(fields=["tenant", "since", "id"], name="claims_by_since"),
            models.Index(fields=["tenant", "expires_at", "id"], name="claims_by_end"),
            models.Index(fields=["name", "id"], name="claims_of_all_by_name"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["namespace", "object_name"], name="object_name_once"),
            models.UniqueConstraint(
                fields=["tenant", "asked_by", "form"],
                condition=~Q(form=""),
                name="form_asks_once",
            ),
        ]
        triggers = [
            pgtrigger.FSM(
                name="moves", field="state", transitions=[(str(a), str(b)) for a, b in moves()]
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.public_id})"

    @property
    def wanted(self) -> bool:
        return self.released_at is None

    def wish(self) -> ClaimWish:
        """What to put into the cluster, as a value for the pure rules."""
        return ClaimWish(
            public_id=self.public_id,
            tenant=self.tenant.slug,
            namespace=self.namespace.name,
            name=self.object_name,
            request_id=self.request_id,
            shape=Shape(self.shape),
            devices=msgspec.convert(self.devices, tuple[DeviceWish, ...]),
            matches=msgspec.convert(self.matches, tuple[MatchWish, ...]),
            configs=msgspec.convert(self.configs, tuple[ConfigWish, ...]),
            resources=tuple((name, count) for name, count in self.resources),
        )

    @transaction.atomic
    def record(self, now: datetime, *, holder: str, **seen: Any) -> bool:
        """Stores what a turn saw; returns whether anything but the time of looking changed.

        `seen` are fields of this row. Nothing is stored by a turn that lost its lease or looked
        before the ask was released; the release has called the next turn.
        """
        changed = {name: value for name, value in seen.items() if getattr(self, name) != value}
        moved = "state" in changed
        if moved:
            changed["since"] = now
        update: dict[str, Any] = {**changed, "looked_at": now}
        if changed:
            update["revision"] = F("revision") + 1
        # Also nothing where a person released it meanwhile: what was seen is about another wish.
        mine = Claim.objects.filter(pk=self.pk, lease=holder, released_at=self.released_at)
        if not mine.update(**update):
            return False
        if moved or "code" in changed:
            ClaimEvent.objects.create(
                claim=self,
                at=now,
                state=changed.get("state", self.state),
                code=seen.get("code", self.code),
                text=seen.get("why", self.why),
            )
        return bool(changed)


class ClaimEvent(models.Model):
    """What happened to an ask, for its timeline."""

    claim = models.ForeignKey(Claim, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField()
    state = models.CharField(max_length=9)
    code = models.CharField(max_length=48, blank=True)
    text = models.TextField(blank=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.claim_id} {self.state}"
