"""Gates that people defined, and every reading of one with the samples that it stands on."""

from __future__ import annotations

import json
import zlib
from typing import Any

import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.db import models

from devices.models import NodePool
from migrationplan.gates import Outcome, Rule
from migrationplan.measures import Measure
from migrationplan.models.move import DIRECTIONS, new_public_id

MEASURES = [(one.value, one.value) for one in Measure]
VERDICTS = [(one.value, one.value) for one in Outcome]


class Gate(models.Model):
    """What is measured, and what is allowed. Waves name it by its slug.

    `secret` signs what a webhook is asked; it is shown once. `query` is PromQL; `least` and
    `most` bound its answer. A retired gate is measured no more, and its readings stay.
    """

    slug = models.SlugField(max_length=63, unique=True)
    name = models.CharField(max_length=80)
    measure = models.CharField(max_length=20, choices=MEASURES)
    margin = models.FloatField(default=0.10)
    tolerance = models.FloatField(default=1.25)
    slack = models.FloatField(default=2.0)
    least = models.PositiveIntegerField(default=20)
    limit = models.FloatField(default=0.0)
    patience = models.DurationField(help_text="How long a Pod may wait for devices.")
    trial = models.BooleanField(default=False)
    url = models.CharField(max_length=500, blank=True)
    query = models.TextField(blank=True)
    secret = models.CharField(max_length=80, blank=True)
    revision = models.PositiveIntegerField(default=1)
    made_by = models.UUIDField()
    made_at = models.DateTimeField()
    retired_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    def rule(self) -> Rule:
        """For the rules."""
        return Rule(
            measure=Measure(self.measure),
            margin=self.margin,
            tolerance=self.tolerance,
            slack=self.slack,
            least=self.least,
            limit=self.limit,
        )

    def settings(self) -> dict[str, Any]:
        """What a reading keeps of it, so that it can be judged again later."""
        return {
            "measure": self.measure,
            "margin": self.margin,
            "tolerance": self.tolerance,
            "slack": self.slack,
            "least": self.least,
            "limit": self.limit,
            "patience": self.patience.total_seconds(),
            "query": self.query,
            "revision": self.revision,
        }


class Reading(models.Model):
    """What one gate said of one pool's moved nodes at one moment. Written once.

    `samples` are compressed JSON, `digest` is its SHA-256; `figures` are the numbers of
    `gates.Reading`. `moved` are pairs of node and since when it is moved.
    """

    public_id = models.CharField(max_length=12, unique=True, default=new_public_id)
    at = models.DateTimeField()
    wave = models.CharField(max_length=12, blank=True, help_text="Public id; empty: no wave.")
    pool = models.ForeignKey(NodePool, on_delete=models.PROTECT, related_name="readings")
    direction = models.CharField(max_length=16, choices=DIRECTIONS)
    moved = models.JSONField()
    nodes = ArrayField(models.CharField(max_length=253), help_text="Names of moved nodes, sorted.")
    since = models.DateTimeField()
    gate = models.CharField(max_length=63)
    name = models.CharField(max_length=80)
    measure = models.CharField(max_length=20, choices=MEASURES)
    settings = models.JSONField()
    trial = models.BooleanField(default=False)
    verdict = models.CharField(max_length=12, choices=VERDICTS)
    sentence = models.CharField(max_length=500)
    figures = models.JSONField(default=dict)
    samples = models.BinaryField()
    digest = models.CharField(max_length=64)

    class Meta:
        ordering = ["-pk"]
        indexes = [
            models.Index(fields=["pool", "gate", "-id"], name="readings_by_gate"),
            models.Index(
                fields=["wave", "gate", "-id"],
                condition=~models.Q(wave=""),
                name="readings_by_wave",
            ),
        ]
        triggers = [
            pgtrigger.Protect(name="reading_kept", operation=pgtrigger.Update | pgtrigger.Delete)
        ]

    def __str__(self) -> str:
        return f"{self.name}: {self.verdict}"

    @property
    def content(self) -> dict[str, Any]:
        """The samples: of each side [what, node, value], and why they are unknown, if they are."""
        found: dict[str, Any] = json.loads(zlib.decompress(bytes(self.samples)))
        return found
