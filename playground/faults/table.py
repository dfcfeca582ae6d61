"""Every fault of the playground by name, each with its mending: for commands, drills and tests.

    with broken(fleet, "driver-down", node="h100-a01", driver="gpu.helios.example"):
        ...
    with broken(real_node, "kubelet-down"):
        ...

Faults of simulated nodes need the process that runs their fleet; those of real nodes and of the
control plane need its folder only.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from playground.errors import PlaygroundError
from playground.faults import claims, drivers, nodes, plane
from playground.faults.parts import Ground
from playground.fleet.fleet import Fleet
from playground.plane.controlplane import ControlPlane
from playground.realnodes.node import RealNode

Act = Callable[..., str]


@dataclass(frozen=True, slots=True)
class Fault:
    """`begin` and `end` take the ground (fleet, real node or plane) and the same keywords; both say
    what they did.

    Without `end` the fault mends itself. One `of_fleet` is none of the control plane.
    """

    name: str
    begin: Act
    end: Act | None
    of_fleet: bool

    @property
    def of_node(self) -> bool:
        """Whether it concerns one node, which may be a real one."""
        return "node" in self.options()

    def do(self, ground: Ground | ControlPlane, *, mend: bool, arguments: Mapping[str, Any]) -> str:
        """Begins or ends; mending takes of the keywords what it needs.

        A real node needs not be named again.
        """
        act = self.end if mend else self.begin
        if act is None:
            raise PlaygroundError(f"{self.name} mends itself.")
        if isinstance(ground, RealNode):
            if not self.of_node:
                raise PlaygroundError(f"{self.name} is no fault of a node.")
            arguments = {"node": ground.name, **arguments}
        known = inspect.signature(act).parameters
        return act(ground, **{key: value for key, value in arguments.items() if key in known})

    @property
    def help(self) -> str:
        return (inspect.getdoc(self.begin) or "").partition("\n")[0]

    def options(self, *, mend: bool = False) -> Mapping[str, inspect.Parameter]:
        """Keywords of one of the two with their defaults."""
        act = self.end if mend and self.end else self.begin
        return {
            name: parameter
            for name, parameter in inspect.signature(act).parameters.items()
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY
        }


def _table() -> dict[str, Fault]:
    found: dict[str, Fault] = {}
    modules = (
        (drivers, True),
        (nodes, True),
        (claims, True),
        (plane, False),
    )
    for module, of_fleet in modules:
        for function, begin in vars(module).items():
            if function.startswith("begin_"):
                words = function.removeprefix("begin_")
                end = vars(module).get(f"end_{words}")
                name = words.replace("_", "-")
                found[name] = Fault(name, begin, end, of_fleet)
    return found


TABLE = _table()


def find(name: str) -> Fault:
    """Raises PlaygroundError where there is no such fault."""
    try:
        return TABLE[name]
    except KeyError:
        raise PlaygroundError(f"There is no fault {name}; there are {', '.join(TABLE)}.") from None


@contextlib.contextmanager
def broken(where: Fleet | RealNode, name: str, **arguments: Any) -> Iterator[None]:
    """Something is broken for as long as the block lasts."""
    fault = find(name)
    ground = where if fault.of_fleet else where.plane
    fault.do(ground, mend=False, arguments=arguments)
    try:
        yield
    finally:
        if fault.end is not None:
            fault.do(ground, mend=True, arguments=arguments)
