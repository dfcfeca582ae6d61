"""What tenants can browse: counted offers with Berth's words and the templates that lead there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.utils import timezone

from devices.history import Usual, usual_waits
from devices.models import ClassWords, Offer, TemplateVersion


@dataclass(frozen=True, slots=True)
class Offered:
    """One class as the catalogue shows it. Counts are None where nobody knows them."""

    name: str
    display_name: str
    words: str
    icon: str
    counts: dict[str, Any]
    counted_at: datetime
    seen_at: datetime | None
    templates: tuple[TemplateVersion, ...]
    usual: Usual = field(default_factory=Usual)
    """How long Pods wait for such a device, from the history."""


def offers_for(query: str = "") -> list[Offered]:
    """Every class, by display name; `query` keeps those of which name, words or groups match."""
    words = {row.device_class: row for row in ClassWords.objects.all()}
    leads: dict[str, list[TemplateVersion]] = {}
    for version in approved():
        for device_class in version.read().device_classes:
            leads.setdefault(device_class, []).append(version)
    usual = usual_waits(timezone.now())
    offers = [
        replace(
            _offered(row, words.get(row.device_class), leads.get(row.device_class, [])),
            usual=usual.get(row.device_class, Usual()),
        )
        for row in Offer.objects.all()
    ]
    asked = query.lower().split()
    kept = [offer for offer in offers if all(word in _haystack(offer) for word in asked)]
    return sorted(kept, key=lambda offer: offer.display_name.lower())


def approved() -> list[TemplateVersion]:
    """What can be asked for now, by name."""
    versions = TemplateVersion.objects.filter(state=TemplateVersion.State.APPROVED)
    return list(versions.select_related("template").order_by("template__name"))


def free_notes(offers: list[Offered], *, old: bool) -> dict[str, str]:
    """A note per class for the cards of a form: "12 free"; no number where the figures are old."""
    notes = {}
    for offer in offers:
        free = None if old else offer.counts.get("free")
        notes[offer.name] = "free: unknown" if free is None else f"{free} free"
    return notes


def _offered(row: Offer, words: ClassWords | None, leads: list[TemplateVersion]) -> Offered:
    return Offered(
        name=row.device_class,
        display_name=words.display_name if words else row.device_class,
        words=words.words if words else "",
        icon=words.icon if words else "device",
        counts=row.counts,
        counted_at=row.counted_at,
        seen_at=row.seen_at,
        templates=tuple(leads),
    )


def _haystack(offer: Offered) -> str:
    return f"{offer.name} {offer.display_name} {offer.words} {offer.counts.get('groups')}".lower()
