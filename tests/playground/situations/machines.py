"""One node as a situation sees it, real or simulated: what can be done to it, in the same words."""

from __future__ import annotations

from typing import Any

from playground.faults.parts import Ground
from playground.faults.table import find


class Machine:
    """A node of a fleet, or a real one."""

    def __init__(self, ground: Ground, name: str) -> None:
        self.ground = ground
        self.name = name
        self._broken: list[tuple[str, dict[str, Any]]] = []

    def fault(self, fault: str, **arguments: Any) -> None:
        """Breaks something until `mend`."""
        self._do(fault, mend=False, arguments=arguments)
        self._broken.append((fault, arguments))

    def mend(self) -> None:
        """All that was broken is well again."""
        while self._broken:
            fault, arguments = self._broken.pop()
            self._do(fault, mend=True, arguments=arguments)

    def _do(self, fault: str, *, mend: bool, arguments: dict[str, Any]) -> None:
        find(fault).do(self.ground, mend=mend, arguments={"node": self.name, **arguments})
