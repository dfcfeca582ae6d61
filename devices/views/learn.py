"""How allocation works: who does what, with the viewer's own objects in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from devices.asks.history import classes_of
from devices.dra.slicereader import SliceReader
from devices.models import Claim, ClassWords, Observed
from tenants.access import tenant_for

MOST_OFFERED = 8
MOST_SLICES = 6


@dataclass(frozen=True, slots=True)
class SliceSeen:
    """One slice that a device of the claim comes from, as the mirror has it."""

    name: str
    driver: str
    pool: str
    generation: int
    devices: int


@require_safe
@login_required
def how_allocation_works(request: HttpRequest, slug: str) -> HttpResponse:
    """`?claim=` chooses whose objects are shown; without it the newest that holds devices."""
    access = tenant_for(request.user, slug)
    rows = Claim.objects.of(access.tenant).whole()
    asked = request.GET.get("claim", "").replace("\x00", "")[:12]
    recent = list(rows.open()[:MOST_OFFERED])
    chosen = rows.filter(public_id=asked).first() if asked else None
    if chosen is None:
        chosen = next((row for row in recent if row.placed), recent[0] if recent else None)
    context: dict[str, Any] = {"access": access, "claim": chosen, "recent": recent}
    if chosen is not None:
        classes = classes_of(chosen)
        words = dict(
            ClassWords.objects.filter(device_class__in=classes).values_list(
                "device_class", "display_name"
            )
        )
        context |= {
            "classes": [(name, words.get(name, "")) for name in classes],
            "claims": sorted({device["claim"] for device in chosen.placed}),
            "drivers": sorted({device["driver"] for device in chosen.placed}),
            "slices": slices_of(chosen),
        }
    return render(request, "devices/how_allocation_works.html", context)


def slices_of(claim: Claim) -> list[SliceSeen]:
    """The slices of the pools from which the claim's devices come; one query."""
    pools = {(device["driver"], device["pool"]) for device in claim.placed}
    if not pools:
        return []
    rows = Observed.objects.filter(
        kind="ResourceSlice",
        driver__in={driver for driver, _ in pools},
        pool__in={pool for _, pool in pools},
    ).order_by("name")
    held = {(device["driver"], device["pool"], device["device"]) for device in claim.placed}
    found = []
    for row in rows[:100]:
        if (row.driver, row.pool) not in pools:
            continue
        piece = SliceReader().read(row.obj)
        names = {(piece.driver, piece.pool, device.name) for device in piece.devices}
        if names & held:
            found.append(
                SliceSeen(
                    piece.name, piece.driver, piece.pool, piece.generation, len(piece.devices)
                )
            )
    return found[:MOST_SLICES]
