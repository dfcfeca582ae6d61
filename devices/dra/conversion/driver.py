"""Proofs about the DRA driver of a node: whether it may stop, whether it is gone or at work.

A driver that stops while claims are allocated on its pool leaves Pods that can never end, and no
event says so; a kubelet that restarts wipes the slices of a driver that runs. So claims are looked
at before, and slices only together with the driver's Pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from devices.dra.claims import Claim
from devices.dra.conversion.nodereport import NodeReport, whole_second
from devices.dra.conversion.place import (
    DEFAULT_TIMES,
    Look,
    Place,
    Times,
    obstacle,
    pods_of,
    seen_twice,
)
from devices.dra.conversion.proof import Proof, not_known, not_yet, proved, refuted
from devices.dra.hardware import count, spots
from devices.dra.holders import claims_of
from devices.dra.pods import Pod
from devices.dra.pools import pools
from devices.dra.slices import Slice
from devices.dra.snapshot import CLAIM, POD, SLICE, Snapshot
from devices.dra.wording import many


def driver_claims(place: Place, snapshot: Snapshot) -> tuple[tuple[Claim, ...], tuple[Claim, ...]]:
    """Claims with a device of the driver on this node, in any namespace; and those of the driver
    of which nobody can tell where their devices are (their slices are gone, no node is named).
    """
    nodes = _nodes_of_pools(place, snapshot)
    here, somewhere = [], []
    for claim in snapshot.claims.values():
        results = claim.allocation.results if claim.allocation else ()
        named = {result.pool for result in results if result.driver == place.driver}
        if not named or claim.allocation is None:
            continue
        selector = claim.allocation.selector
        pinned = selector.only_node if selector is not None else None
        at = {pinned} if pinned else {nodes.get(pool, "") for pool in named}
        if place.node in at:
            here.append(claim)
        elif "" in at:
            somewhere.append(claim)
    return tuple(here), tuple(somewhere)


def claims_are_free(
    place: Place,
    look: Look,
    now: datetime,
    *,
    empty_since: datetime | None,
    report: NodeReport | None,
    times: Times = DEFAULT_TIMES,
) -> Proof:
    """That the driver may stop: no claim holds a device of it on this node, no Pod that used one is
    still ending, and the node itself has none prepared.

    ``empty_since`` as for `no_plugin_holders`. ``report`` is what the node said of itself since
    then: what was deleted by force has left the API and is prepared all the same. What a kubelet
    says soon after its start proves nothing: its count begins anew (pkg/kubelet/cm/dra/manager.go).
    """
    if blocked := obstacle(place, look, now, POD, CLAIM, SLICE):
        return blocked
    here, somewhere = driver_claims(place, look.snapshot)
    if here:
        return not_yet(
            f"{many(len(here), 'claim holds', 'claims hold')} devices of the driver",
            *map(str, here),
        )
    ending = [pod for pod in look.snapshot.pods.values() if _ending(pod, place, look.snapshot)]
    if ending:
        return not_yet(
            f"{many(len(ending), 'Pod with claims is', 'Pods with claims are')} still ending",
            *map(str, ending),
        )
    if somewhere:
        return not_known("claims of the driver name no node that is known", *map(str, somewhere))
    twice = seen_twice(empty_since, now, times)
    if not twice.proved or empty_since is None:
        return twice
    if report is None or report.began < whole_second(empty_since):
        return not_known("the node has not been asked since it looked empty")
    # It counts what it prepared since it started; what it found it clears away, or gives back.
    counts_from = report.kubelet_started + times.cleaning
    if now < counts_from:
        return not_yet(
            "the kubelet started lately and counts no claim from before", again=counts_from
        )
    if report.began < whole_second(counts_from):
        return not_known("the node has to be asked again: its kubelet had just started")
    left = report.claims_in_use.get(place.driver, 0)
    if left:
        return not_yet(f"the node still has {left} claims prepared that the API does not show")
    return proved(f"no claim allocated or prepared; {twice.why}")


def driver_is_off(place: Place, look: Look, now: datetime) -> Proof:
    """That the driver's Pod is gone from the node. Its slices stay for another 30 s."""
    if blocked := obstacle(place, look, now, POD):
        return blocked
    if not place.driver_sets:
        return not_known("nobody recorded which DaemonSet runs the driver")
    if pods := pods_of(place.driver_sets, place, look):
        return not_yet("the driver's Pod is still there", *pods)
    return proved("no Pod of the driver on the node")


def slices_are_gone(place: Place, look: Look, now: datetime) -> Proof:
    """That the driver is off and nothing that it published of the node is left.

    No slices alone prove nothing: a kubelet's restart wipes them, and the driver puts them back.
    """
    if blocked := obstacle(place, look, now, POD, SLICE):
        return blocked
    off = driver_is_off(place, look, now)
    if not off.proved:
        return off
    left = _slices(place, look.snapshot)
    if left:
        return not_yet(f"{len(left)} slices of the driver are left", *(one.name for one in left))
    return proved("no Pod of the driver, and no slice")


def slices_are_complete(place: Place, look: Look, now: datetime) -> Proof:
    """That the driver has published every piece of hardware of the node, in valid whole pools."""
    if blocked := obstacle(place, look, now, SLICE):
        return blocked
    names = [one.name for one in _slices(place, look.snapshot)]
    if not names:
        return not_yet("the driver has published nothing")
    for pool in pools(look.snapshot).values():
        if pool.driver != place.driver or not any(_here(one, place) for one in pool.slices):
            continue
        if pool.incomplete:
            return not_yet(f"pool {pool.name} has {len(pool.slices)} of {pool.expected} slices")
        if pool.invalid:
            return refuted(f"pool {pool.name}: {pool.invalid}", *names, name="DRIFT_POOL_INVALID")
        if pool.outdated:
            return not_yet(f"pool {pool.name} still has older slices", *pool.outdated)
    if place.hardware is None:
        return not_known("nobody recorded how many devices the node has")
    found = count(spots(look.snapshot).get(place.node, {}).get(place.driver, ()))
    told = f"{found} of {place.hardware} devices published"
    if found > place.hardware:
        return refuted(told, *names, name="DRIFT_DEVICES_TOO_MANY")
    return proved(told, *names) if found == place.hardware else not_yet(told, *names)


def _slices(place: Place, snapshot: Snapshot) -> list[Slice]:
    """All that the driver has published of the node, of whatever generation."""
    return [one for one in snapshot.slices if one.driver == place.driver and _here(one, place)]


def _here(one: Slice, place: Place) -> bool:
    if one.reach.per_device:
        return any(device.reach.node_name == place.node for device in one.devices)
    return one.reach.node_name == place.node


def _nodes_of_pools(place: Place, snapshot: Snapshot) -> Mapping[str, str]:
    """By the name of a pool of the driver, the node it belongs to, as its slices say."""
    return {
        one.pool: one.reach.node_name
        for one in snapshot.slices
        if one.driver == place.driver and one.reach.node_name
    }


def _ending(pod: Pod, place: Place, snapshot: Snapshot) -> bool:
    """Whether a Pod on the node is being deleted and used a claim of the driver, or one that is
    gone already.
    """
    if pod.node_name != place.node or pod.meta.deleted is None:
        return False
    for claim in claims_of(pod, snapshot).values():
        if claim is None:
            return True
        results = claim.allocation.results if claim.allocation else ()
        if any(result.driver == place.driver for result in results):
            return True
    return False
