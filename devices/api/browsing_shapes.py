"""What the API says of classes, pools, nodes, devices, searches and features: …Out, one a noun.

Figures are counts of devices; one that nobody knows is null. Words are those of the pages.
"""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from devices.catalogue.browsing import Viewer, claim_json, held_for
from devices.catalogue.classes import Hit, Hits, Offered
from devices.dra.describe import Trait, traits
from devices.dra.features import Capability
from devices.dra.hardwarefacts import DeviceFacts, Figures, NodeFacts, PoolFacts
from devices.dra.hardwarewords import node_taint_words, taint_words


class FiguresOut(serializers.Serializer):
    """Devices by how they stand."""

    total = serializers.IntegerField()
    free = serializers.IntegerField()
    allocated = serializers.IntegerField()
    shared = serializers.IntegerField()
    fragmented = serializers.IntegerField()
    unavailable = serializers.IntegerField()
    unknown = serializers.IntegerField()


class TraitOut(serializers.Serializer):
    """An attribute or a capacity: its qualified name, and how people read it."""

    name = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    value = serializers.CharField()
    words = serializers.CharField()
    capacity = serializers.BooleanField()


class GroupOut(serializers.Serializer):
    """Devices that are equal in all that describes them."""

    words = serializers.CharField()
    driver = serializers.CharField()
    total = serializers.IntegerField()
    free = serializers.IntegerField()
    partition = serializers.BooleanField()
    shareable = serializers.BooleanField()
    nodes = serializers.IntegerField(allow_null=True)
    traits = TraitOut(many=True)


class LargestOut(serializers.Serializer):
    """The largest request that fits now: how many on one node; null with a code: nobody can say."""

    count = serializers.IntegerField(allow_null=True)
    code = serializers.CharField(allow_blank=True)


class UsualOfClassOut(serializers.Serializer):
    """Half waited at most p50 seconds, 95 of 100 at most p95; null where too few say."""

    samples = serializers.IntegerField()
    p50 = serializers.FloatField(allow_null=True)
    p95 = serializers.FloatField(allow_null=True)


class RateOut(serializers.Serializer):
    """How often forecasts came true."""

    right = serializers.IntegerField()
    compared = serializers.IntegerField()
    percent = serializers.IntegerField(allow_null=True)


class MayUseOut(serializers.Serializer):
    """Whether the caller's tenant may use it, and what is left; null: no limit. For the platform,
    the tenants that may.
    """

    allowed = serializers.BooleanField()
    left = serializers.IntegerField(allow_null=True)
    limit = serializers.IntegerField(allow_null=True)
    tenants = serializers.ListField(child=serializers.CharField(), allow_null=True)


class HealthOut(serializers.Serializer):
    """How a driver does."""

    driver = serializers.CharField()
    state = serializers.CharField()
    sentence = serializers.CharField()


class ReliesOut(serializers.Serializer):
    """A feature that a class needs, and how far one may rely on it in this cluster."""

    feature = serializers.CharField()
    words = serializers.CharField()
    stage = serializers.CharField()
    assumed = serializers.BooleanField()


class ClassOut(serializers.Serializer):
    """A device class with its figures, as old as `seen_at` says."""

    name = serializers.CharField()
    display_name = serializers.CharField()
    words = serializers.CharField()
    figures = FiguresOut()
    unavailable_reasons = serializers.DictField(child=serializers.IntegerField())
    unknown_reasons = serializers.DictField(child=serializers.IntegerField())
    problem = serializers.CharField(allow_blank=True)
    paths = serializers.ListField(child=serializers.CharField())
    plugin = serializers.JSONField(allow_null=True)
    largest = LargestOut(allow_null=True)
    usual_wait = UsualOfClassOut()
    forecasts = RateOut()
    may_use = MayUseOut()
    frozen = serializers.BooleanField()
    drivers = HealthOut(many=True)
    stage = serializers.CharField()
    relies = ReliesOut(many=True)
    templates = serializers.ListField(child=serializers.CharField())
    groups = GroupOut(many=True)
    counted_at = serializers.DateTimeField()
    seen_at = serializers.DateTimeField(allow_null=True)


FIGURES = ("total", "free", "allocated", "shared", "fragmented", "unavailable", "unknown")


def class_json(offer: Offered) -> dict[str, Any]:
    """A class as `ClassOut` has it."""
    counts = offer.counts
    most = counts.get("largest")
    allowed = offer.allowance
    return {
        "name": offer.name,
        "display_name": offer.display_name,
        "words": offer.words,
        "figures": {name: counts.get(name) for name in FIGURES},
        "unavailable_reasons": counts.get("unavailable_reasons") or {},
        "unknown_reasons": counts.get("unknown_reasons") or {},
        "problem": counts.get("problem") or "",
        "paths": counts.get("path") or [],
        "plugin": counts.get("plugin"),
        "largest": most and {"count": most["count"], "code": most["code"]},
        "usual_wait": {
            "samples": offer.usual.samples,
            "p50": offer.usual.p50,
            "p95": offer.usual.p95,
        },
        "forecasts": {
            "right": offer.rate.right,
            "compared": offer.rate.compared,
            "percent": offer.rate.percent,
        },
        "may_use": {
            "allowed": offer.open,
            "left": allowed.left if allowed else None,
            "limit": allowed.limit if allowed else None,
            "tenants": None if offer.tenants is None else list(offer.tenants),
        },
        "frozen": offer.freeze is not None,
        "drivers": counts.get("drivers") or [],
        "stage": offer.stage.value,
        "relies": [relies_json(one) for one in offer.relies],
        "templates": [version.template.slug for version in offer.templates],
        "groups": [group_json(group) for group in counts.get("groups") or ()],
        "counted_at": offer.counted_at,
        "seen_at": offer.seen_at,
    }


def relies_json(found: Capability) -> dict[str, Any]:
    return {
        "feature": found.feature.key,
        "words": found.feature.words,
        "stage": found.stage.value,
        "assumed": bool(found.assumed),
    }


def group_json(group: dict[str, Any] | Any) -> dict[str, Any]:
    """A group as `GroupOut` has it."""
    found = traits(group.get("attributes") or {}, group.get("capacity") or {})
    return {
        **{
            name: group.get(name)
            for name in ("words", "driver", "total", "free", "partition", "shareable", "nodes")
        },
        "traits": [trait_json(trait) for trait in found],
    }


def trait_json(trait: Trait) -> dict[str, Any]:
    return {
        "name": trait.name,
        "label": trait.label,
        "value": trait.value,
        "words": trait.words,
        "capacity": trait.capacity,
    }


class HitOut(serializers.Serializer):
    """A group that fits a search, or nearly: `lacks` says what of it does not."""

    device_class = serializers.CharField()
    display_name = serializers.CharField()
    group = GroupOut(allow_null=True)
    free = serializers.IntegerField(allow_null=True)
    total = serializers.IntegerField(allow_null=True)
    lacks = serializers.ListField(child=serializers.CharField())
    templates = serializers.ListField(child=serializers.CharField())


class SearchOut(serializers.Serializer):
    """What was understood of a text, and the groups that fit, else what is near."""

    text = serializers.CharField()
    understood = serializers.ListField(child=serializers.CharField())
    fits = HitOut(many=True)
    near = HitOut(many=True)


def search_json(found: Hits) -> dict[str, Any]:
    return {
        "text": found.text,
        "understood": list(found.words),
        "fits": [_hit(one) for one in found.hits],
        "near": [_hit(one) for one in found.near],
    }


def _hit(hit: Hit) -> dict[str, Any]:
    return {
        "device_class": hit.offer.name,
        "display_name": hit.offer.display_name,
        "group": group_json(hit.group) if hit.group else None,
        "free": hit.free,
        "total": hit.total,
        "lacks": list(hit.lacks),
        "templates": [version.template.slug for version in hit.offer.templates],
    }


class PoolOut(serializers.Serializer):
    """A slice pool: what a driver publishes under one name."""

    driver = serializers.CharField()
    name = serializers.CharField()
    state = serializers.ChoiceField(choices=["complete", "incomplete", "invalid"])
    why = serializers.CharField(allow_blank=True, help_text="Why nothing is given from it.")
    note = serializers.CharField(allow_blank=True)
    generation = serializers.IntegerField()
    slices = serializers.IntegerField()
    slices_expected = serializers.IntegerField()
    used_from = serializers.CharField()
    nodes = serializers.ListField(child=serializers.CharField())
    figures = FiguresOut()


def figures_json(found: Figures) -> dict[str, int]:
    return {name: getattr(found, name) for name in FIGURES}


def pool_json(found: PoolFacts) -> dict[str, Any]:
    return {
        "driver": found.pool.driver,
        "name": found.pool.name,
        "state": found.state,
        "why": found.why,
        "note": found.note,
        "generation": found.pool.generation,
        "slices": len(found.pool.slices),
        "slices_expected": found.pool.expected,
        "used_from": found.places,
        "nodes": list(found.nodes),
        "figures": figures_json(found.figures),
    }


class TaintOut(serializers.Serializer):
    """A taint as it is written, and what it does."""

    taint = serializers.CharField()
    words = serializers.CharField()


class ResourceOut(serializers.Serializer):
    """An extended resource of device plugins."""

    name = serializers.CharField()
    allocatable = serializers.IntegerField()
    requested = serializers.IntegerField()


class NodeOut(serializers.Serializer):
    """A node; `ready` is null where it does not say, `known` false where only slices name it."""

    name = serializers.CharField()
    known = serializers.BooleanField()
    ready = serializers.BooleanField(allow_null=True)
    cordoned = serializers.BooleanField()
    taints = TaintOut(many=True)
    figures = FiguresOut()
    pools = serializers.ListField(child=serializers.DictField(child=serializers.CharField()))
    extended_resources = ResourceOut(many=True)


def node_json(found: NodeFacts) -> dict[str, Any]:
    node = found.node
    return {
        "name": found.name,
        "known": node is not None,
        "ready": found.ready,
        "cordoned": node is not None and node.unschedulable,
        "taints": [
            {"taint": str(taint), "words": node_taint_words(taint)}
            for taint in (node.taints if node is not None else ())
        ],
        "figures": figures_json(found.figures),
        "pools": [{"driver": driver, "name": name} for driver, name in found.pools],
        "extended_resources": [
            {"name": one.name, "allocatable": one.allocatable, "requested": one.requested}
            for one in found.resources
        ],
    }


class HolderOut(serializers.Serializer):
    """A claim of the cluster; `id` is the ask behind it, null where Berth did not make it."""

    namespace = serializers.CharField()
    name = serializers.CharField()
    id = serializers.CharField(allow_null=True)


class DeviceOut(serializers.Serializer):
    """A device. Claims of one's own are named, others counted; the platform sees all."""

    driver = serializers.CharField()
    pool = serializers.CharField()
    name = serializers.CharField()
    node = serializers.CharField(allow_blank=True)
    used_from = serializers.CharField(allow_blank=True)
    title = serializers.CharField(allow_blank=True)
    state = serializers.CharField()
    code = serializers.CharField(allow_blank=True)
    published = serializers.BooleanField()
    traits = TraitOut(many=True)
    taints = TaintOut(many=True)
    holders = HolderOut(many=True)
    other_holders = serializers.IntegerField()


def device_json(found: DeviceFacts, viewer: Viewer) -> dict[str, Any]:
    who = held_for(viewer, found.holders)
    return {
        "driver": found.key[0],
        "pool": found.key[1],
        "name": found.key[2],
        "node": found.node,
        "used_from": found.places,
        "title": found.title,
        "state": found.kind,
        "code": found.standing.reason,
        "published": found.device is not None,
        "traits": [trait_json(trait) for trait in found.traits],
        "taints": [{"taint": str(one), "words": taint_words(one)} for one in found.taints],
        "holders": [claim_json(claim) for claim in who.own],
        "other_holders": who.others,
    }


class HoldingOut(serializers.Serializer):
    """Who held a device and when. Of others' claims only the times: `own` is false then."""

    own = serializers.BooleanField()
    since = serializers.DateTimeField()
    since_seen = serializers.BooleanField(help_text="Seen by Berth; the cluster has no stamp.")
    until = serializers.DateTimeField(allow_null=True)
    namespace = serializers.CharField(allow_blank=True)
    claim = serializers.CharField(allow_blank=True)
    id = serializers.CharField(source="public_id", allow_blank=True)
    tenant = serializers.CharField(allow_blank=True)
    device_class = serializers.CharField(allow_blank=True)
    amount = serializers.DictField(child=serializers.CharField(), allow_null=True)
