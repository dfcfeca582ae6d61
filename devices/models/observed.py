"""The mirror's tables: what the watch process saw of the cluster, and how fresh each kind is.

Only `devices.mirror` writes them. Rows are what the cluster said, never what Berth wishes.
"""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q

from devices.cluster.decoding import loads


class Observed(models.Model):
    """One object of the cluster: its JSON, and the few columns that lists filter by.

    The JSON is kept as bytes, not as jsonb: jsonb refuses NUL characters, which annotations may
    hold, is written 1.3 times slower and read back 2.5 times slower (measured on 50,000 objects),
    and nothing here looks into it by SQL. It lacks most of `managedFields`, images of Nodes, and
    what `devices.mirror.kinds` says of other kinds. A migration that changes what is kept of an
    object empties this table and Sync, so that everything is listed anew.
    """

    uid = models.CharField(primary_key=True, max_length=64)
    kind = models.CharField(max_length=40)
    api_version = models.CharField(max_length=80)
    namespace = models.CharField(max_length=63, blank=True)
    name = models.CharField(max_length=253)
    resource_version = models.CharField(max_length=40)
    raw = models.BinaryField()
    note = models.CharField(
        max_length=200, blank=True, help_text="What of it could not be kept as it was, if anything."
    )
    created_at = models.DateTimeField(null=True)
    seen_at = models.DateTimeField(help_text="When this version was written here.")
    gone_at = models.DateTimeField(
        null=True, help_text="Events only: when the cluster forgot it. Other rows go with theirs."
    )
    deleting = models.BooleanField(default=False, help_text="It has a deletionTimestamp.")
    node = models.CharField(max_length=253, blank=True, help_text="Pod, slice, lease: its node.")
    driver = models.CharField(max_length=63, blank=True, help_text="Slice, taint rule: its driver.")
    pool = models.CharField(max_length=253, blank=True, help_text="Slice, rule: its slice pool.")
    phase = models.CharField(
        max_length=128, blank=True, help_text="See devices.mirror.rows; of an Event: its reason."
    )
    classes = ArrayField(
        models.CharField(max_length=253),
        default=list,
        help_text="Device classes that a claim or a template asks for, sorted.",
    )
    counts = ArrayField(
        models.BigIntegerField(),
        default=list,
        help_text="For each of `classes`, how many devices a quota is charged.",
    )
    uses = ArrayField(
        models.CharField(max_length=253),
        default=list,
        help_text="Claims and templates that a Pod names, and claims generated for it, sorted.",
    )
    claim = models.CharField(max_length=63, blank=True, help_text="Label berth.dev/claim.")
    tenant = models.CharField(max_length=63, blank=True, help_text="Label berth.dev/tenant.")
    owner_uid = models.CharField(
        max_length=64, blank=True, help_text="Its controller's uid; of an Event: what it is about."
    )

    class Meta:
        indexes = [
            models.Index(fields=["kind", "namespace", "name"], name="observed_by_name"),
            models.Index(fields=["kind", "node"], condition=~Q(node=""), name="observed_by_node"),
            models.Index(
                fields=["kind", "driver", "pool"], condition=~Q(driver=""), name="observed_by_pool"
            ),
            models.Index(fields=["claim"], condition=~Q(claim=""), name="observed_by_claim"),
            GinIndex(fields=["uses"], condition=~Q(uses=[]), name="observed_by_use"),
            models.Index(
                fields=["owner_uid"], condition=~Q(owner_uid=""), name="observed_by_owner"
            ),
        ]

    def __str__(self) -> str:
        return (
            f"{self.kind} {self.namespace}/{self.name}"
            if self.namespace
            else (f"{self.kind} {self.name}")
        )

    @property
    def obj(self) -> dict[str, Any]:
        """The object, decoded; with its kind and apiVersion, which items of lists lack."""
        found: dict[str, Any] = loads(bytes(self.raw))
        return {"apiVersion": self.api_version, "kind": self.kind, **found}


class Sync(models.Model):
    """How far the mirror of one kind is. All times are the database's."""

    kind = models.CharField(primary_key=True, max_length=40)
    api_version = models.CharField(max_length=80, blank=True)
    version = models.CharField(
        max_length=40, blank=True, help_text="resourceVersion to resume from; empty: list anew."
    )
    served = models.BooleanField(default=True)
    listed_at = models.DateTimeField(null=True, help_text="When the last whole list was stored.")
    news_at = models.DateTimeField(null=True, help_text="When the cluster last said anything.")
    alive_at = models.DateTimeField(
        null=True, help_text="When the mirror was last known to show what the cluster has."
    )
    error = models.TextField(blank=True)
    error_since = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.kind


class ClusterState(models.Model):
    """Whether the API server answers; one row, written by the watch process."""

    name = models.CharField(primary_key=True, max_length=63, default="cluster")
    reachable = models.BooleanField(default=False)
    since = models.DateTimeField(null=True, help_text="Since when it is reachable, or is not.")
    contact_at = models.DateTimeField(null=True, help_text="When it last answered.")
    message = models.TextField(blank=True, help_text="Why it is not reachable, in a sentence.")
    release = models.CharField(max_length=63, blank=True, help_text="Such as v1.37.2.")
    identity = models.CharField(
        max_length=64, blank=True, help_text="uid of kube-system: another one is another cluster."
    )
    capabilities = models.JSONField(
        default=list, help_text="Facts of devices.cluster.capabilities, as JSON."
    )
    capabilities_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.name


class Leadership(models.Model):
    """A lease in the database: who holds it may write the mirror until it expires."""

    name = models.CharField(primary_key=True, max_length=63)
    holder = models.CharField(max_length=120, blank=True)
    since = models.DateTimeField(null=True)
    expires = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.name}: {self.holder or 'nobody'}"
