"""What each DeviceClass has to offer, counted from the mirror by a worker and read by pages."""

from __future__ import annotations

from django.db import models


class Offer(models.Model):
    """The newest count of one class. `counts` is the JSON form of `devices.dra.offers`."""

    device_class = models.CharField(max_length=253, unique=True)
    counts = models.JSONField()
    counted_at = models.DateTimeField()
    seen_at = models.DateTimeField(null=True, help_text="How old the mirror was when it counted.")

    class Meta:
        ordering = ["device_class"]

    def __str__(self) -> str:
        return self.device_class


class ClassWords(models.Model):
    """What Berth adds to a DeviceClass for people: a display name and a sentence."""

    device_class = models.CharField(max_length=253, unique=True)
    display_name = models.CharField(max_length=80)
    words = models.CharField(max_length=240, blank=True)
    icon = models.CharField(max_length=24, default="device")

    class Meta:
        ordering = ["display_name"]

    def __str__(self) -> str:
        return self.display_name
