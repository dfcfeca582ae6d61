"""The balance of every node: what it can hold, what is charged to it line by line, what is free.

Nothing is clamped and nothing unknown is counted as zero: a node that is overcommitted shows a
negative balance, and one with a line that nobody can read has none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from devices.dra.charges import Line, Rule, charges
from devices.dra.quantity import ZERO, Quantity
from devices.dra.snapshot import Snapshot

#: Rules of the stream that comes from devices.
DEVICES = frozenset({Rule.MAPPING, Rule.OVERHEAD})


@dataclass(frozen=True, slots=True)
class Account:
    """One resource of one node. ``allocatable`` is None where the node does not say, or where
    only Pods know of the node.
    """

    node: str
    resource: str
    allocatable: Quantity | None
    lines: tuple[Line, ...] = ()

    @property
    def charged(self) -> Quantity | None:
        """Every line that counts, added up; None where one of them is unknown."""
        return total(self.lines)

    @property
    def by_devices(self) -> Quantity | None:
        """What devices alone are charged, inside a Pod's budget or not."""
        return total((line for line in self.lines if line.rule in DEVICES), contained=True)

    @property
    def free(self) -> Quantity | None:
        """Negative where the node is overcommitted; None where it cannot be known."""
        charged = self.charged
        if self.allocatable is None or charged is None:
            return None
        return self.allocatable - charged

    @property
    def by_numa(self) -> Mapping[int | None, Quantity | None]:
        """What devices are charged, by NUMA node; under None what no device could say."""
        parts: dict[int | None, list[Line]] = defaultdict(list)
        for line in self.lines:
            if line.rule in DEVICES:
                parts[line.numa].append(line)
        return {
            numa: total(lines, contained=True)
            for numa, lines in sorted(parts.items(), key=lambda part: (part[0] is None, part[0]))
        }

    @property
    def odd(self) -> tuple[Line, ...]:
        """Lines about which something is odd; a node with any is not safe for new claims."""
        return tuple(line for line in self.lines if line.code)


def accounts(snapshot: Snapshot) -> Mapping[str, Mapping[str, Account]]:
    """By node and resource: every resource that a node offers or that is charged to it.

    Nodes that only a claim still names have no account: what is gone owes nothing.
    """
    return snapshot.once("accounts", _accounts)


def total(lines: Iterable[Line], *, contained: bool = False) -> Quantity | None:
    """The sum of lines, None where one of them is unknown. Lines contained in a Pod's budget
    count only where they are asked for; an entry that is charged twice never does.
    """
    found = ZERO
    for line in lines:
        if line.code == "LEDGER_COUNTED_TWICE" or (line.contained and not contained):
            continue
        if line.amount is None:
            return None
        found = found + line.amount
    return found


def _accounts(snapshot: Snapshot) -> Mapping[str, Mapping[str, Account]]:
    by_node = charges(snapshot)
    found: dict[str, Mapping[str, Account]] = {}
    for name in sorted({*snapshot.nodes, *by_node}):
        offered = snapshot.node(name).allocatable
        lines: dict[str, list[Line]] = defaultdict(list)
        for line in by_node.get(name, ()):
            lines[line.resource].append(line)
        found[name] = {
            resource: Account(name, resource, offered.get(resource), tuple(lines[resource]))
            for resource in sorted({*offered, *lines})
        }
    return found
