"""Freezes: what takes no new work for now, by whom, why and until when."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar

import pgtrigger
from django.db import models
from django.db.models import Q

from devices.models.claim import new_public_id
from devices.models.lease import Leased


class FreezeQuerySet(models.QuerySet["Freeze"]):
    """Questions that turns, pages and verbs ask."""

    def standing(self, now: datetime) -> FreezeQuerySet:
        """Freezes in force. One whose time is over is not, also before the sweep has ended it."""
        return self.filter(ended_at=None).filter(Q(until=None) | Q(until__gt=now))

    def over(self, now: datetime) -> FreezeQuerySet:
        """Freezes whose time is over and that nobody has ended yet."""
        return self.filter(ended_at=None, until__lte=now)

    def of_requests(self) -> FreezeQuerySet:
        """Those that keep requests back: by class, by tenant, of all. The others are of places."""
        return self.filter(scope__in=[Freeze.Scope.ALL, Freeze.Scope.TENANT, Freeze.Scope.CLASS])

    def of_places(self) -> FreezeQuerySet:
        """Those that the cluster holds by taints or by a policy, which a turn keeps there."""
        return self.filter(scope__in=[Freeze.Scope.POOL, Freeze.Scope.DRIVER, Freeze.Scope.CHANGE])

    def of_tenant(self, slug: str) -> FreezeQuerySet:
        """What keeps a tenant's requests back: its own freezes, those of any class and of all."""
        return self.of_requests().exclude(Q(scope=Freeze.Scope.TENANT) & ~Q(target=slug))


class Freeze(models.Model):
    """New work waits; what runs goes on. `strict` also stops replacements of what runs. Of a node
    pool `path` closes only nodes whose devices take that path; `change` is of driver changes there.

    What was frozen, why and by whom never changes; a freeze ends once, by a person or by its time.
    """

    class Scope(models.TextChoices):
        CLASS = "class", "One device class"
        TENANT = "tenant", "One tenant"
        ALL = "all", "Everything"
        POOL = "pool", "One node pool"
        DRIVER = "driver", "One driver's devices"
        CHANGE = "change", "Driver changes of one node pool"

    class Path(models.TextChoices):
        DRA = "dra", "Nodes of DRA"
        PLUGIN = "plugin", "Nodes of the device plugin"

    class End(models.TextChoices):
        LIFTED = "lifted", "Lifted"
        EXPIRED = "expired", "Its time was over"
        DONE = "done", "What it was for is over"

    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    scope = models.CharField(max_length=6, choices=Scope)
    target = models.CharField(
        max_length=253,
        blank=True,
        help_text="The class's or driver's name, or the slug of the tenant or node pool.",
    )
    path = models.CharField(max_length=6, choices=Path, blank=True)
    strict = models.BooleanField(default=False)
    reason = models.CharField(max_length=240)
    frozen_by = models.UUIDField(help_text="Opaque person id.")
    frozen_at = models.DateTimeField()
    until = models.DateTimeField(null=True, help_text="It ends by itself then; empty: never.")
    ended_at = models.DateTimeField(null=True)
    ended_by = models.UUIDField(null=True, help_text="Empty where its time was over.")
    end = models.CharField(max_length=7, choices=End, blank=True)
    request_id = models.CharField(max_length=64)

    objects = FreezeQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        indexes = [
            models.Index(fields=["scope", "target"], condition=Q(ended_at=None), name="freezes_on")
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["scope", "target"], condition=Q(ended_at=None), name="frozen_once"
            ),
            models.CheckConstraint(
                condition=Q(scope="all", target="") | (~Q(scope="all") & ~Q(target="")),
                name="freeze_has_its_target",
            ),
        ]
        triggers = [
            pgtrigger.Protect(name="kept", operation=pgtrigger.Delete),
            pgtrigger.ReadOnly(
                name="as_it_was",
                fields=[
                    "public_id",
                    "scope",
                    "target",
                    "path",
                    "strict",
                    "reason",
                    "frozen_by",
                    "frozen_at",
                    "until",
                    "request_id",
                ],
            ),
            pgtrigger.Protect(
                name="ends_once",
                operation=pgtrigger.Update,
                condition=pgtrigger.Q(old__ended_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"freeze of {self.words} ({self.public_id})"

    @property
    def words(self) -> str:
        """What is frozen, in words."""
        scopes = self.Scope
        match self.scope:
            case scopes.ALL:
                return "everything"
            case scopes.POOL:
                only = f", {self.Path(self.path).label.lower()}" if self.path else ""
                return f"node pool {self.target}{only}"
            case scopes.CHANGE:
                return f"driver changes of node pool {self.target}"
        return f"{scopes(self.scope).value} {self.target}"


class FreezeHold(Leased):
    """How far the cluster holds a freeze of a place: what was closed there, and by what.

    `closures` are the taints and rules that Berth made and has not taken away again, as
    `dra.closures` writes them. `reach` counts, when it was frozen, what stays and what is closed.
    `versions` are the generations of what must not change, as they were found; `changed` says which
    changed all the same.
    """

    lease_time: ClassVar[timedelta] = timedelta(seconds=60)

    class State(models.TextChoices):
        CLOSING = "closing", "Being closed"
        CLOSED = "closed", "Closed"
        OPENING = "opening", "Being opened"
        OPEN = "open", "Open again"

    freeze = models.OneToOneField(Freeze, on_delete=models.PROTECT, related_name="hold")
    state = models.CharField(max_length=7, choices=State, default=State.CLOSING)
    closures = models.JSONField(default=list)
    wanted = models.PositiveIntegerField(default=0)
    by_node = models.BooleanField(default=False, help_text="Nodes closed for want of taint rules.")
    reach = models.JSONField(default=dict)
    versions = models.JSONField(default=dict)
    changed = models.JSONField(default=list)
    answer = models.CharField(max_length=500, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["looked_at"], condition=~Q(state="open"), name="holds_looked_at")
        ]

    def __str__(self) -> str:
        return f"{self.freeze}: {self.state}"

    @property
    def words(self) -> str:
        """How far it is, what stays, and what changed all the same, in one sentence or two."""
        if self.freeze.scope == Freeze.Scope.CHANGE:
            held = "Denied by a policy" if self.state == self.State.CLOSED else "Not denied yet"
            got = "; ".join(
                f"{name} {'is gone' if version == 'gone' else 'changed'} all the same"
                for name, version, *_ in self.changed
            )
            return f"{held}. {got}." if got else f"{held}."
        closed = {
            self.State.CLOSED: "Closed",
            self.State.CLOSING: "Being closed",
            self.State.OPENING: "Being opened",
        }.get(self.State(self.state), "Open again")
        if not self.reach or self.state == self.State.OPEN:
            return f"{closed}." if not self.answer else f"{closed}: {self.answer}"
        rules, nodes = self.wanted - self.reach["nodes"], self.reach["nodes"]
        by = [f"{rules} taint rule{'s' * (rules != 1)}"] if rules > 0 else []
        by += [f"{nodes} node taint{'s' * (nodes != 1)}, for every Pod"] if nodes else []
        pods = self.reach["pods"]
        stay = f"{pods} Pod{'s' * (pods != 1)} stay{'s' * (pods == 1)}"
        return f"{closed} by {' and '.join(by)}. {stay}." if by else f"{closed}: no node is there."
