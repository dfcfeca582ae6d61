"""What a drill sees: the node, its driver, its Pods, and what Berth makes of them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from devices.dra.claims import Claim
from devices.dra.conversion import Look, Place
from devices.dra.holders import claims_of
from devices.dra.leaks import leaks
from devices.dra.pods import Pod
from devices.dra.podstatus import read_pod_status
from devices.dra.pools import Pool, pools
from devices.dra.snapshot import NODE, POD, SLICE


@dataclass(frozen=True, slots=True)
class MoveSeen:
    """A move of the drill's node that began after the drill: its steps in order, as (step,
    direction), whether it has ended, and whether it was given up before it changed anything.
    """

    steps: tuple[tuple[str, str], ...]
    ended: str
    cancelled: bool

    @property
    def turned(self) -> bool:
        """Whether it went past quiescing one way, and then the other way."""
        changed = {way for step, way in self.steps if step != "quiescing"}
        return len({way for _, way in self.steps}) == 2 and len(changed) >= 1


@dataclass(frozen=True, slots=True)
class Scene:
    """A drill's look. `mark` is the name that a person gives to what they make for it,
    `baseline` what `remembered` said when it began, `board` the open rows of the leak board as
    (code, claims), `since` when the present step began, `bundle` the evidence that was collected.
    """

    place: Place
    look: Look
    now: datetime
    mark: str
    since: datetime
    baseline: Mapping[str, Any] = field(default_factory=dict)
    board: tuple[tuple[str, tuple[str, ...]], ...] = ()
    moves: tuple[MoveSeen, ...] = ()
    owner: str = ""
    bundle: str = ""

    @property
    def unheard(self) -> str:
        """Which list nobody heard lately; empty where what is seen can be trusted."""
        for kind in (NODE, POD, SLICE):
            heard = self.look.heard.get(kind)
            if heard is None:
                return f"no list of {kind}s was heard"
            if self.now - heard > self.look.fresh:
                return f"the list of {kind}s is {int((self.now - heard).total_seconds())} s old"
        return ""

    @property
    def node_ready(self) -> bool | None:
        """Whether the kubelet says that it is well; None where there is no such node."""
        node = self.look.snapshot.nodes.get(self.place.node)
        return node.ready if node is not None and node.uid == self.place.uid else None

    def drivers(self) -> list[Pod]:
        """The driver's Pods on the node."""
        return [
            pod
            for pod in self.look.snapshot.pods.values()
            if pod.node_name == self.place.node
            and any(each.made(pod) for each in self.place.driver_sets)
        ]

    def slice_pools(self) -> list[Pool]:
        """The driver's slice pools of the node, also while no slice of the newest is there."""
        return [
            pool
            for pool in pools(self.look.snapshot).values()
            if pool.driver == self.place.driver
            and any(one.reach.node_name == self.place.node for one in pool.slices)
        ]

    def holders(self) -> dict[str, Pod]:
        """Running Pods of the node with a claim, by uid."""
        return {
            pod.meta.uid: pod
            for pod in self.look.snapshot.pods.values()
            if pod.node_name == self.place.node
            and not pod.finished
            and claims_of(pod, self.look.snapshot)
        }

    def own_claims(self) -> list[Claim]:
        """Claims, in any namespace, that were made for this drill."""
        return [one for one in self.look.snapshot.claims.values() if self._own(one.meta.name)]

    def own_pods(self) -> list[Pod]:
        """Pods that were made for this drill."""
        return [one for one in self.look.snapshot.pods.values() if self._own(one.meta.name)]

    def own_leaks(self) -> list[str]:
        """Codes of what is found of the drill's claims."""
        mine = {str(claim) for claim in self.own_claims()}
        return sorted(
            str(leak.code) for leak in leaks(self.look.snapshot) if mine & set(leak.claims)
        )

    def on_board(self, code: str = "") -> bool:
        """Whether the leak board names a claim of the drill, with that code if one is given."""
        return any(
            (not code or found == code)
            and any(self._own(name.rpartition("/")[2]) for name in claims)
            for found, claims in self.board
        )

    def _own(self, name: str) -> bool:
        return name == self.mark or name.startswith(f"{self.mark}-")


def remembered(scene: Scene) -> dict[str, Any]:
    """What must be known later of how it was at the beginning; JSON values."""
    return {
        "drivers": {pod.meta.uid: starts(pod) for pod in scene.drivers()},
        "driver_names": sorted(str(pod) for pod in scene.drivers()),
        "generations": {pool.name: pool.generation for pool in scene.slice_pools()},
        "starts": {uid: starts(pod) for uid, pod in scene.holders().items()},
        "names": {uid: str(pod) for uid, pod in scene.holders().items()},
        "owner": scene.owner,
    }


def starts(pod: Pod) -> dict[str, str]:
    """When each container that runs was started."""
    return {
        each.name: each.started.isoformat()
        for each in read_pod_status(pod.raw).containers
        if each.running and each.started is not None
    }
