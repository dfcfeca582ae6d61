"""What the API says of the cluster's features, with the words of the page."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from devices.catalogue.browsing import Viewer
from devices.catalogue.capabilities import Saying, Served


class EvidenceOut(serializers.Serializer):
    """One thing that a verdict rests on."""

    source = serializers.CharField()  # type: ignore[assignment]
    words = serializers.CharField()


class CapabilityOut(serializers.Serializer):
    """A feature of the cluster. How it was found out is for the platform: null for tenants."""

    feature = serializers.CharField()
    words = serializers.CharField()
    means = serializers.CharField()
    stage = serializers.CharField()
    served = serializers.BooleanField()
    assumed = serializers.ListField(child=serializers.CharField())
    without = serializers.CharField()
    evidence = EvidenceOut(many=True, allow_null=True)


class SayingOut(serializers.Serializer):
    """What the platform has said of a gate that nobody can read."""

    component = serializers.CharField()
    gate = serializers.CharField()
    on = serializers.BooleanField()
    note = serializers.CharField(allow_blank=True)
    by = serializers.CharField()
    at = serializers.DateTimeField()


class CapabilitiesOut(serializers.Serializer):
    """What the cluster serves; `said` is null for tenants."""

    release = serializers.CharField(allow_blank=True)
    read_at = serializers.DateTimeField(allow_null=True)
    features = CapabilityOut(many=True)
    said = SayingOut(many=True, allow_null=True)


def capabilities_json(found: Served, viewer: Viewer) -> dict[str, Any]:
    """The short form for tenants, everything for the platform."""
    whole = viewer.tenant is None
    return {
        "release": found.release,
        "read_at": found.read_at,
        "features": [
            {
                "feature": one.feature.key,
                "words": one.feature.words,
                "means": one.feature.means,
                "stage": one.stage.value,
                "served": one.served,
                "assumed": [component.value for component in one.assumed],
                "without": one.feature.without,
                "evidence": [{"source": e.source, "words": e.words} for e in one.evidence]
                if whole
                else None,
            }
            for one in found.features
            if whole or one.feature.tenant
        ],
        "said": [_saying(one) for one in found.said] if whole else None,
    }


def _saying(said: Saying) -> dict[str, Any]:
    return {
        "component": said.component.value,
        "gate": said.gate,
        "on": said.on,
        "note": said.note,
        "by": said.by,
        "at": said.at,
    }
