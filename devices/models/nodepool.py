"""Node pools: nodes whose devices change their path together, and by which switches."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.postgres.fields import ArrayField
from django.db import models

#: A kubelet keeps a stopped plugin's devices for 5 minutes; 20 s more cover its status and clocks.
SETTLING = timedelta(minutes=5, seconds=20)


class NodePool(models.Model):
    """Nodes by labels, one type of device on them, and what switches its two paths.

    A switch is a node label (`key=value`) that the DaemonSet of the plugin or of the driver selects
    on. Berth's slice pools are something else: a driver and a name.
    """

    slug = models.SlugField(max_length=63, unique=True)
    name = models.CharField(max_length=80)
    words = models.CharField(max_length=240, blank=True)
    selector = models.JSONField(help_text="Labels that its nodes have: {key: value}.")
    resource = models.CharField(max_length=253, help_text="Extended resource of the plugin.")
    driver = models.CharField(max_length=63)
    device_class = models.CharField(max_length=253)
    plugin_label = models.CharField(max_length=320)
    driver_label = models.CharField(max_length=320)
    plugin_sets = ArrayField(models.CharField(max_length=320), default=list)
    driver_sets = ArrayField(models.CharField(max_length=320), default=list)
    devices_per_node = models.PositiveIntegerField(null=True, help_text="Null: not recorded.")
    settling = models.DurationField(default=SETTLING)
    revision = models.PositiveIntegerField(default=1)
    made_by = models.UUIDField()
    made_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
