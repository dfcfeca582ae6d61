"""Whose a scheduling gate is: the queueing system that put it on a Pod, and what it waits for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class GateOwner:
    """Who takes a gate off, and on what that depends."""

    name: str
    waits_for: str


#: Gates by the domain that stands before the slash.
OWNERS: Final = {
    "kueue.x-k8s.io": GateOwner("Kueue", "its queue's quota, not devices"),
    "berth.dev": GateOwner("Berth", "Berth lets it go on"),
    "jobset.sigs.k8s.io": GateOwner("JobSet", "the other Pods of its set"),
    "scheduling.volcano.sh": GateOwner("Volcano", "its queue"),
    "run.ai": GateOwner("Run:ai", "its project's quota"),
    "karmada.io": GateOwner("Karmada", "its queue"),
}


def gate_owner(gate: str) -> GateOwner:
    """The owner of a gate; one that is not in the table is known by its domain alone."""
    domain = gate.partition("/")[0]
    for known, owner in OWNERS.items():
        if domain == known or domain.endswith(f".{known}"):
            return owner
    return GateOwner(domain, "whoever put it there takes it off")
