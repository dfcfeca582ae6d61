"""A ledger in memory, look by look, for tests of the rules."""

from __future__ import annotations

from dataclasses import replace

from devices.dra.ledgercompare import Difference, compare
from devices.dra.ledgerentries import Entry, Seen, look
from devices.dra.ledgerlog import Act, LogLine, news
from devices.dra.ledgerpools import PoolState, follow
from devices.dra.ledgerstate import State, states
from devices.dra.pools import PoolKey
from devices.dra.snapshot import Snapshot


class Book:
    """A ledger in memory: what the tables do, without tables."""

    def __init__(self) -> None:
        self.lines: list[LogLine] = []
        self.standing: dict[int, LogLine] = {}
        self.pools: dict[PoolKey, PoolState] = {}
        self.looks = 0
        self.seen = Seen()
        self.snapshot = Snapshot()

    def look(self, cluster: Snapshot) -> list[LogLine]:
        self.looks += 1
        self.pools = dict(follow(self.pools, cluster))
        self.snapshot, self.seen = cluster, look(cluster, self.pools)
        added = [
            replace(line, look=self.looks, id=len(self.lines) + number)
            for number, line in enumerate(news(self.standing.values(), self.seen), 1)
        ]
        for line in added:
            self.standing.pop(line.ends, None)
            if line.act is not Act.RELEASE:
                self.standing[line.id] = line
        self.lines += added
        return added

    @property
    def charges(self) -> dict[str, Entry]:
        return {
            line.entry.key: line.entry for line in self.standing.values() if line.act is Act.CHARGE
        }

    @property
    def differences(self) -> tuple[Difference, ...]:
        return compare(self.charges, self.seen)

    def state(self, node: str) -> tuple[State, set[str]]:
        found = states(self.snapshot, self.pools, self.charges, self.seen, self.differences, {})
        [one] = [each for each in found if each.node == node]
        return one.state, {reason.code for reason in one.reasons}
