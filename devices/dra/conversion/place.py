"""What is converted (one sort of devices on one node), and what was seen of it, with its age.

A proof rests on lists that were heard. A list that nobody heard, or that is old, proves nothing,
least of all an empty one; neither does a list with an object that could not be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from devices.dra.conversion.proof import Proof, not_known, not_yet, proved, refuted
from devices.dra.nodes import Node
from devices.dra.pods import Pod
from devices.dra.snapshot import NODE, Snapshot

#: A list is as good as the present for so long.
FRESH: Final = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Times:
    """What is waited for on one place; a simulated kubelet that is quicker needs less.

    ``grace``: how long a kubelet keeps the devices of a plugin that stopped. ``settling``: what is
    waited to be sure that it is over. ``margin``: how long before the end of the grace a List must
    have been, for nobody sees the exact moment of the stop. ``second_look``: a node counts as empty
    once it has been seen so for this long without a break, so that what the scheduler was binding
    at the first look shows at the second. ``cleaning``: how long after its start a kubelet may have
    claims prepared that no Pod owns and that it does not count (its reconciler runs every minute).
    """

    grace: timedelta = timedelta(minutes=5)
    settling: timedelta = timedelta(minutes=5, seconds=20)
    margin: timedelta = timedelta(seconds=30)
    second_look: timedelta = timedelta(seconds=30)
    cleaning: timedelta = timedelta(minutes=2)


DEFAULT_TIMES: Final = Times()


@dataclass(frozen=True, slots=True)
class DaemonSet:
    """A DaemonSet by which a plugin or a driver reaches nodes."""

    namespace: str
    name: str

    def made(self, pod: Pod) -> bool:
        """Whether the Pod is one of its own."""
        return pod.meta.namespace == self.namespace and any(
            owner.controller and owner.kind == "DaemonSet" and owner.name == self.name
            for owner in pod.meta.owners
        )


@dataclass(frozen=True, slots=True)
class Place:
    """One node and one sort of devices on it, which a plugin or a driver gives out.

    ``uid`` is the node's: a machine that comes back under an old name is another one. ``offered``
    is how many devices the plugin offers when all is well, ``hardware`` how many pieces of hardware
    there are; None where nobody recorded it.
    """

    node: str
    uid: str
    resource: str
    driver: str
    plugin_sets: tuple[DaemonSet, ...]
    driver_sets: tuple[DaemonSet, ...]
    offered: int | None = None
    hardware: int | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """A cluster as it was seen.

    ``heard`` has, by kind, the last moment at which the snapshot's list of it was known to be
    whole and true; a kind that was never heard has no entry.
    """

    snapshot: Snapshot
    heard: Mapping[str, datetime]
    fresh: timedelta = FRESH


def obstacle(place: Place, look: Look, now: datetime, *kinds: str) -> Proof | None:
    """Why nothing can be proved of the place from lists of these kinds and of nodes, or None."""
    for kind in dict.fromkeys((NODE, *kinds)):
        since = look.heard.get(kind)
        if since is None:
            return not_known(f"no list of {kind}s was heard")
        if now - since > look.fresh:
            age = int((now - since).total_seconds())
            return not_known(f"the list of {kind}s is {age} s old")
        unread = [each.object for each in look.snapshot.unread if _kind(each.object) == kind]
        if unread:
            return not_known(f"a {kind} could not be read", *unread)
    node = look.snapshot.nodes.get(place.node)
    if node is None:
        return refuted(f"node {place.node} is not there")
    if node.uid != place.uid:
        return refuted(f"node {place.node} is another machine now")
    return None


def node_of(place: Place, look: Look) -> Node:
    """The place's Node, where nothing is an `obstacle`."""
    return look.snapshot.nodes[place.node]


def silent(place: Place, look: Look) -> Proof | None:
    """Why the Node's status cannot be trusted, or None: only a living kubelet keeps it true."""
    if node_of(place, look).ready is True:
        return None
    return not_known(f"the kubelet of {place.node} is silent, so the node's status may be old")


def seen_twice(empty_since: datetime | None, now: datetime, times: Times) -> Proof:
    """That the node was empty at the first look, where it is empty now."""
    since = now if empty_since is None else empty_since
    if now - since < times.second_look:
        again = since + times.second_look
        return not_yet("empty, and to be looked at a second time", again=again)
    return proved(f"empty for {int((now - since).total_seconds())} s")


def pods_of(sets: Iterable[DaemonSet], place: Place, look: Look) -> tuple[str, ...]:
    """Names of the DaemonSets' Pods on the node, those that are ending included."""
    return tuple(
        str(pod)
        for pod in look.snapshot.pods.values()
        if pod.node_name == place.node and any(each.made(pod) for each in sets)
    )


def _kind(title: str) -> str:
    return title.partition("/")[0]
