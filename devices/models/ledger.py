"""The node ledger's tables: the log, which is only ever added to, and what it comes to."""

from __future__ import annotations

from typing import Any

import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Exists, OuterRef, Q

from devices.dra.charges import Rule
from devices.dra.ledgercompare import Verdict
from devices.dra.ledgerlog import Act
from devices.dra.ledgerstate import State

ACTS = [(one.value, one.value) for one in Act]
RULES = [(one.value, one.value) for one in Rule]
STATES = [(one.value, one.value) for one in State]
VERDICTS = [(one.value, one.value) for one in Verdict]


class LedgerLines(models.QuerySet["LedgerLine"]):
    """Lines by what stood when."""

    def standing(self, at: Any = None) -> LedgerLines:
        """Charges and refused lines that no other line had ended at that moment (None: now)."""
        enders = LedgerLine.objects.filter(ends=OuterRef("pk"))
        rows = self.exclude(act=Act.RELEASE.value)
        if at is not None:
            rows, enders = rows.filter(at__lte=at), enders.filter(at__lte=at)
        return rows.filter(~Exists(enders))

    def charges(self, at: Any = None) -> LedgerLines:
        """Charges that stood."""
        return self.standing(at).filter(act=Act.CHARGE.value)


class LedgerLine(models.Model):
    """One line of the log. An amount is a whole number of billionths, null where nobody knows it.

    `ends` is the line that this one ends or supersedes. The version is that of the slice: epoch of
    the slice pool, generation, resourceVersion. `at` is the moment that the mirror showed.
    """

    look = models.BigIntegerField(help_text="Number of the look at the cluster that wrote it.")
    at = models.DateTimeField()
    act = models.CharField(max_length=8, choices=ACTS)
    ends = models.OneToOneField(
        "self", on_delete=models.PROTECT, null=True, related_name="ended_by"
    )
    key = models.CharField(max_length=32)
    node = models.CharField(max_length=253)
    rule = models.CharField(max_length=16, choices=RULES)
    resource = models.CharField(max_length=320)
    nanos = models.DecimalField(max_digits=60, decimal_places=0, null=True)
    unit = models.CharField(max_length=16, help_text="How it was written: quantity format.")
    payer = models.CharField(max_length=340)
    pod = models.CharField(max_length=320, blank=True)
    pod_uid = models.CharField(max_length=320, blank=True)
    claim = models.CharField(max_length=320, blank=True)
    claim_uid = models.CharField(max_length=320, blank=True)
    driver = models.CharField(max_length=63, blank=True)
    pool = models.CharField(max_length=253, blank=True)
    device = models.CharField(max_length=63, blank=True)
    share = models.CharField(max_length=64, blank=True)
    container = models.CharField(max_length=253, blank=True)
    numa = models.IntegerField(null=True, help_text="Null: the device does not say.")
    contained = models.BooleanField(default=False, help_text="Adds nothing to what is charged.")
    epoch = models.IntegerField(default=0)
    generation = models.BigIntegerField(default=0)
    version = models.DecimalField(max_digits=30, decimal_places=0, default=0)
    source = models.CharField(max_length=270, blank=True)
    writer = models.CharField(max_length=253, blank=True, help_text="Field manager of the source.")
    code = models.CharField(max_length=48, blank=True)

    objects = LedgerLines.as_manager()

    class Meta:
        ordering = ["-pk"]
        indexes = [
            models.Index(fields=["node", "resource", "-id"], name="ledger_by_node"),
            models.Index(fields=["at"], name="ledger_by_time"),
            models.Index(fields=["key"], name="ledger_by_key"),
            models.Index(fields=["pod"], condition=~Q(pod=""), name="ledger_by_pod"),
            models.Index(fields=["claim"], condition=~Q(claim=""), name="ledger_by_claim"),
            models.Index(
                fields=["at"], condition=Q(act__in=["doubled", "older"]), name="ledger_refused"
            ),
        ]
        triggers = [
            pgtrigger.Protect(
                name="ledger_line_kept", operation=pgtrigger.Update | pgtrigger.Delete
            )
        ]

    def __str__(self) -> str:
        return f"{self.act} {self.rule} {self.resource} on {self.node}"


class LedgerHead(models.Model):
    """How far the ledger is; one row. Whoever writes holds it."""

    name = models.CharField(primary_key=True, max_length=16, default="ledger")
    look = models.BigIntegerField(default=0)
    as_of = models.DateTimeField(null=True, help_text="The moment that the last look showed.")
    looked_at = models.DateTimeField(null=True)
    lines = models.BigIntegerField(default=0, help_text="Lines written so far.")
    doubled = models.BigIntegerField(default=0, help_text="Doubled keys rejected so far.")
    older = models.BigIntegerField(default=0, help_text="Older versions refused so far.")
    release = models.CharField(
        max_length=32, blank=True, help_text="Of the cluster at the last look."
    )
    waiting = models.IntegerField(
        default=0, help_text="Pods with devices that wait for want of what is charged."
    )
    numa_refused = models.IntegerField(
        default=0, help_text="Pods that a kubelet refused because no NUMA zone fits, there now."
    )
    since_equal = models.DateTimeField(
        null=True, help_text="Since when nothing has diverged; null: something does."
    )

    def __str__(self) -> str:
        return f"look {self.look}"


class LedgerPool(models.Model):
    """What the ledger knows of a slice pool: its epoch, and the newest generation accepted."""

    driver = models.CharField(max_length=63)
    pool = models.CharField(max_length=253)
    epoch = models.IntegerField(default=1)
    generation = models.BigIntegerField(default=0)
    slices = ArrayField(models.CharField(max_length=253), default=list)
    complete = models.BooleanField(default=True)
    invalid = models.TextField(blank=True)
    refused = models.BigIntegerField(null=True, help_text="An older generation published now.")
    since = models.DateTimeField(help_text="Since when it is so.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["driver", "pool"], name="ledger_pool")]

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}"


class LedgerNode(models.Model):
    """Whether a node's ledger can be relied on. `code` is the worst reason's; reasons are pairs of
    code and what it is about. `figures` are billionths by resource as the last look left them:
    offered, requests, mapping, overhead (null: unknown), and how many lines are odd.
    """

    node = models.CharField(primary_key=True, max_length=253)
    state = models.CharField(max_length=16, choices=STATES)
    code = models.CharField(max_length=48, blank=True)
    reasons = models.JSONField(default=list)
    figures = models.JSONField(default=dict)
    since = models.DateTimeField()
    told = models.BooleanField(default=False, help_text="An alert was raised for it.")

    class Meta:
        indexes = [
            models.Index(fields=["state"], condition=~Q(state="safe"), name="ledger_nodes_not_safe")
        ]

    def __str__(self) -> str:
        return f"{self.node}: {self.state}"


class LedgerDifference(models.Model):
    """An amount on which the log, the objects and the Pod's status do not agree, while it lasts and
    after. Sides are quantities as text; empty where one cannot be told.
    """

    key = models.CharField(max_length=1200)
    node = models.CharField(max_length=253)
    resource = models.CharField(max_length=320)
    pod = models.CharField(max_length=320, blank=True)
    claim = models.CharField(max_length=320, blank=True)
    verdict = models.CharField(max_length=8, choices=VERDICTS)
    code = models.CharField(max_length=48)
    log = models.CharField(max_length=80, blank=True)
    objects_say = models.CharField(max_length=80, blank=True)
    status = models.CharField(max_length=80, blank=True)
    line_keys = ArrayField(models.CharField(max_length=32), default=list)
    computed = models.JSONField(default=list, help_text="What the objects of now come to, by line.")
    since = models.DateTimeField()
    until = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]
        indexes = [
            models.Index(fields=["node"], condition=Q(until=None), name="ledger_differences")
        ]

    def __str__(self) -> str:
        return f"{self.resource} of {self.pod} on {self.node}: {self.verdict}"
