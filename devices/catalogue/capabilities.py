"""What this cluster serves, as last read of it and as the platform says where nobody can read.

Reading is the watch process's; saying how a scheduler's gate is set is a verb here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db import transaction

from devices.cluster.capabilities import facts_of
from devices.dra.features import Capability, Reading, Said, capabilities
from devices.dra.features_table import FEATURES, Component
from devices.models import AssumedGate, ClusterState
from portal.audit.record import record
from portal.errors import Invalid
from tenants.access import PlatformAccess
from tenants.people import names_of
from tenants.policy import PlatformAct

LONGEST_NOTE: Final = 240


@dataclass(frozen=True, slots=True)
class Served:
    """The features of this cluster in the order of the table; ``read_at`` is None where the API
    server was never asked.
    """

    release: str
    read_at: datetime | None
    features: tuple[Capability, ...]
    said: tuple[Saying, ...] = ()


@dataclass(frozen=True, slots=True)
class Saying:
    """What somebody has said of one gate, and when."""

    component: Component
    gate: str
    on: bool
    note: str
    by: str
    at: datetime


def served() -> Served:
    """Three queries at most."""
    state = ClusterState.objects.first()
    rows = list(AssumedGate.objects.all())
    names = names_of(row.said_by for row in rows) if rows else {}
    said = tuple(
        Saying(
            Component(row.component), row.gate, row.on, row.note, names[row.said_by], row.said_at
        )
        for row in rows
    )
    release = state.release if state is not None else ""
    found = capabilities(
        _readings(state.capabilities if state is not None else ()), release, _sayings(said)
    )
    return Served(release, state.capabilities_at if state is not None else None, found, said)


def askable() -> tuple[tuple[Component, str], ...]:
    """Every gate of a component about which something may be said, in the order of the table."""
    return tuple(
        (component, gate)
        for feature in FEATURES
        for gate in feature.gates
        for component in feature.needs
    )


@transaction.atomic
def say(
    *,
    access: PlatformAccess,
    component: str,
    gate: str,
    on: bool | None,
    note: str = "",
    request_id: str,
    now: datetime,
) -> None:
    """Says how a gate of a component is set; None takes back what was said. Twice is fine.

    Raises `NotPermitted`, and `Invalid` with the fields `component`, `gate` and `note`.
    """
    access.require(PlatformAct.ASSUME)
    note = note.strip()
    wrong = _wrong(component, gate, note)
    if wrong:
        raise Invalid("Nothing was noted; some answers are not right.", fields=wrong)
    rows = AssumedGate.objects.select_for_update().filter(component=component, gate=gate)
    before = rows.first()
    if on is None:
        rows.delete()
    elif before is None or (before.on, before.note) != (on, note):
        AssumedGate.objects.update_or_create(
            component=component,
            gate=gate,
            defaults={"on": on, "note": note, "said_by": access.user.person, "said_at": now},
        )
    was = None if before is None else before.on
    if was is not on or (before is not None and before.note != note):
        record(
            action="feature.assumed" if on is not None else "feature.not assumed",
            subject=f"{gate} in {component}",
            request_id=request_id,
            at=now,
            person=access.user.person,
            facts={"before": _word(was), "after": _word(on), "note": note},
        )


def _wrong(component: str, gate: str, note: str) -> dict[str, str]:
    wrong = {}
    known = askable()
    components = sorted({one.value for one, _ in known})
    if component not in components:
        wrong["component"] = f"Choose from {', '.join(components)}."
    elif (component, gate) not in known:
        gates = sorted(name for one, name in known if one == component)
        wrong["gate"] = f"Of {component} there are {', '.join(gates)}."
    if len(note) > LONGEST_NOTE:
        wrong["note"] = f"At most {LONGEST_NOTE} characters."
    return wrong


def _word(on: bool | None) -> str:
    return "as the release has it" if on is None else "on" if on else "off"


def _readings(stored: Iterable[Mapping[str, str]]) -> dict[str, Reading]:
    return {
        name: Reading(fact.state.value, fact.source.value, fact.stage, fact.detail)
        for name, fact in facts_of(stored).items()
    }


def _sayings(said: Iterable[Saying]) -> dict[tuple[Component, str], Said]:
    return {(one.component, one.gate): Said(one.on, one.by, one.note) for one in said}
