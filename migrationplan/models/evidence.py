"""What was seen of a node pool at the moments that matter, and the bundles that were made of it."""

from __future__ import annotations

from typing import ClassVar

import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.db import models

from devices.models import NodePool
from devices.models.claim import new_public_id

CHANGES = pgtrigger.Update | pgtrigger.Delete


class Exhibit(models.Model):
    """Something as it was, by the digest of its bytes: kept once, however often it is shown."""

    digest = models.CharField(primary_key=True, max_length=64, help_text="SHA-256, in hex.")
    body = models.BinaryField()

    class Meta:
        triggers: ClassVar = [pgtrigger.Protect(name="exhibit_kept", operation=CHANGES)]

    def __str__(self) -> str:
        return self.digest


class Sighting(models.Model):
    """What the mirror showed of some nodes of a pool at one moment; there it is soon forgotten.

    `objects` are {kind, namespace, name, uid, digest}, the last an exhibit's.
    """

    pool = models.ForeignKey(NodePool, on_delete=models.PROTECT, related_name="sightings")
    moves = ArrayField(models.CharField(max_length=12), help_text="Public ids, sorted.")
    nodes = ArrayField(models.CharField(max_length=253))
    at = models.DateTimeField()
    heard = models.JSONField(help_text="By kind: the moment that the mirror showed; null: never.")
    why = models.CharField(max_length=240)
    objects_seen = models.JSONField(default=list)
    left_out = models.PositiveIntegerField(default=0, help_text="Nodes that were too many.")

    class Meta:
        ordering = ["at", "pk"]
        indexes = [models.Index(fields=["pool", "at"], name="sightings_of_pool")]
        triggers: ClassVar = [pgtrigger.Protect(name="sighting_kept", operation=CHANGES)]

    def __str__(self) -> str:
        return f"{self.at:%F %T}: {self.why}"


class Evidence(models.Model):
    """A bundle: what it is about, its files by digest, and the digest of the whole.

    Its bytes are made anew whenever they are asked for; what they hold is in `Exhibit`.
    """

    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    pool = models.ForeignKey(NodePool, on_delete=models.PROTECT, related_name="evidence")
    moves = ArrayField(models.CharField(max_length=12), help_text="Public ids, sorted.")
    since = models.DateTimeField()
    until = models.DateTimeField()
    why = models.CharField(max_length=240)
    made_by = models.UUIDField(null=True, help_text="Opaque person id; none for Berth itself.")
    made_at = models.DateTimeField()
    request_id = models.CharField(max_length=64)
    about = models.JSONField(help_text="What the manifest says that it is.")
    files = models.JSONField(help_text="[name, digest, bytes] in the order of the bundle.")
    digest = models.CharField(max_length=64, help_text="SHA-256 of the whole file, in hex.")
    size = models.PositiveBigIntegerField()

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["digest"], name="evidence_by_digest")]
        triggers: ClassVar = [pgtrigger.Protect(name="evidence_kept", operation=CHANGES)]

    def __str__(self) -> str:
        return f"evidence {self.public_id}"

    @property
    def filename(self) -> str:
        """Of a download, without its ending."""
        return f"berth-evidence-{self.public_id}"
