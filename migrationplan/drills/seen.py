"""What proves the steps of drills: each looks at a scene and says whether it is so, and why. Pure.

No news is not good news: a list that nobody heard proves nothing, whatever it lacks.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from devices.dra.conversion import Proof, Verdict, slices_are_complete
from devices.dra.driverhealth import driver_health
from devices.dra.leaks import leaks
from devices.dra.pods import Pod
from devices.dra.podstatus import read_pod_status
from devices.dra.wording import many
from migrationplan.drills.scene import Scene, starts

#: A driver's Pod that is not Ready for so long makes what it published stale (design: 60 s).
STALE_AFTER = timedelta(seconds=60)
#: So long a Pod that asks for somebody else's claim must have been kept waiting.
KEPT_WAITING = timedelta(seconds=20)


def yes(why: str, *evidence: str) -> Proof:
    return Proof(Verdict.PROVED, why, evidence)


def no(why: str, *evidence: str) -> Proof:
    return Proof(Verdict.NOT_YET, why, evidence)


def never(why: str, *evidence: str) -> Proof:
    """It went wrong, and waiting does not mend it."""
    return Proof(Verdict.REFUTED, why, evidence)


def at_work(scene: Scene) -> Proof:
    """The node is well, and its driver has published all that there is."""
    if scene.node_ready is not True:
        return no(f"node {scene.place.node} is not Ready")
    return slices_are_complete(scene.place, scene.look, scene.now)


def driver_gone(scene: Scene) -> Proof:
    """The driver's Pod is another one than at the beginning or none, or its container is."""
    if not scene.baseline.get("drivers"):
        return never("no Pod of the driver was on the node when this began")
    still = [str(pod) for pod in scene.drivers() if not _another(pod, scene)]
    return no("the driver of the beginning still runs", *still) if still else yes("it is gone")


def driver_back(scene: Scene) -> Proof:
    """Another one is Ready."""
    new = [pod for pod in scene.drivers() if _another(pod, scene)]
    ready = [str(pod) for pod in new if _ready(pod)]
    if ready:
        return yes("the driver is Ready again", *ready)
    return no("the driver is not Ready again", *map(str, new))


def _another(pod: Pod, scene: Scene) -> bool:
    """Whether a Pod, or a container of it, was started after the beginning."""
    before = scene.baseline.get("drivers", {}).get(pod.meta.uid)
    return before is None or (bool(starts(pod)) and starts(pod) != before)


def nothing_restarted(scene: Scene) -> Proof:
    """Pods with claims on the node run on with the containers that they had."""
    present = {pod.meta.uid: pod for pod in scene.look.snapshot.pods.values()}
    broken, ended, kept = [], [], 0
    for uid, before in scene.baseline.get("starts", {}).items():
        pod = present.get(uid)
        if pod is None or pod.finished:
            ended.append(scene.baseline["names"][uid])
        elif any(starts(pod).get(name) != at for name, at in before.items()):
            broken.append(str(pod))
        else:
            kept += 1
    if broken:
        return never(f"{many(len(broken), 'Pod')} had a container started again", *broken)
    if ended and not kept:
        return never("every Pod with a claim has ended, so nothing can be said", *ended)
    if not kept:
        return yes("no Pod had a claim on the node when this began")
    run_on = many(kept, "Pod with claims runs", "Pods with claims run")
    return yes(f"{run_on} on, no container was started again", *ended)


def node_silent(scene: Scene) -> Proof:
    """The node is not Ready, and Kubernetes says so."""
    if scene.node_ready is None:
        return never(f"node {scene.place.node} is not there, or another machine has its name")
    return no("the node is Ready") if scene.node_ready else yes("the node is not Ready")


def loss_noticed(scene: Scene) -> Proof:
    """Berth names the node where it tells how the driver does."""
    health = driver_health(scene.look.snapshot).get(scene.place.driver)
    if health is None:
        return no(f"{scene.place.driver} publishes nothing")
    named = {*health.not_ready, *health.lost}
    found = scene.place.node in named
    return yes(health.sentence) if found else no(f"the driver's health says: {health.sentence}")


def nothing_leaked(scene: Scene) -> Proof:
    """No claim with devices of the node belongs to nobody."""
    found = [leak for leak in leaks(scene.look.snapshot) if leak.node == scene.place.node]
    if not found:
        return yes("nothing is held on the node that nobody has")
    return no(f"{len(found)} findings", *(f"{one.code} {one.claims[0]}" for one in found))


def allocated_twice(scene: Scene) -> Proof:
    """Two claims of the drill hold one device, and Berth finds it."""
    if "LEAK_DOUBLE_ALLOCATION" in scene.own_leaks():
        return yes("found: one device is held twice", *map(str, scene.own_claims()))
    return no("nothing is held twice by claims of this drill", *map(str, scene.own_claims()))


def leak_made(scene: Scene) -> Proof:
    """A claim of the drill holds a device that nobody uses, and Berth finds it."""
    found = scene.own_leaks()
    if found:
        return yes(f"found: {', '.join(found)}", *map(str, scene.own_claims()))
    return no("no claim of this drill is found to be leaked", *map(str, scene.own_claims()))


def on_the_board(scene: Scene) -> Proof:
    """The leak board has it for people."""
    return yes("it stands on the leak board") if scene.on_board() else no("not on the leak board")


def tidied(scene: Scene) -> Proof:
    """Nothing that was made for the drill is left, on the cluster or on the board."""
    left = [*map(str, scene.own_claims()), *map(str, scene.own_pods())]
    if left:
        return no("objects of this drill are left", *left)
    return no("the leak board still names it") if scene.on_board() else yes("nothing is left")


def tried_across(scene: Scene) -> Proof:
    """A Pod names the claim of another namespace."""
    pods = scene.own_pods()
    return yes("a Pod asks for it", *map(str, pods)) if pods else no("no such Pod yet")


def kept_out(scene: Scene) -> Proof:
    """It was given nothing for a while: not placed, and counted by no claim."""
    pods = scene.own_pods()
    if not pods:
        return no("the Pod is not there yet")
    for pod in pods:
        holds = [
            str(claim)
            for claim in scene.look.snapshot.claims.values()
            if any(one.uid == pod.meta.uid for one in claim.reserved_for)
        ]
        if holds:
            return never(f"{pod} was given the claim of another namespace", *holds)
        if pod.node_name and not pod.finished:
            return never(f"{pod} was placed on {pod.node_name}")
    made = min(pod.meta.created or scene.since for pod in pods)
    if scene.now - max(made, scene.since) < KEPT_WAITING:
        return no("it waits; looked at for 20 s")
    return yes("it waits and gets nothing", *map(str, pods))


def stale(scene: Scene) -> Proof:
    """The driver has not been Ready for a minute, and its slices still stand."""
    if not scene.slice_pools():
        return never("its slices are gone too, so nothing stands that could be old")
    ready = [pod for pod in scene.drivers() if _ready(pod)]
    if ready:
        return no("the driver's Pod is Ready", *map(str, ready))
    since = [at for pod in scene.drivers() if (at := _not_ready_since(pod)) is not None]
    began = max(since, default=scene.since)
    if scene.now - began < STALE_AFTER:
        return no("the driver is not Ready; after a minute its slices count as old")
    return yes("the driver is not Ready for a minute, its slices stand")


def older_beside(scene: Scene) -> Proof:
    """A slice of an older generation stands beside the newest."""
    old = [name for pool in scene.slice_pools() for name in pool.outdated]
    return yes("an older slice stands beside the newest", *old) if old else no("no older slice")


def newest_counts(scene: Scene) -> Proof:
    """What counts is the generation of the beginning, or a later one, and it is whole."""
    before = scene.baseline.get("generations", {})
    for pool in scene.slice_pools():
        if pool.generation < before.get(pool.name, 0):
            return never(f"{pool.name} went back to generation {pool.generation}")
        if pool.incomplete or pool.invalid:
            return no(f"{pool.name} is not whole: {pool.invalid or 'slices are missing'}")
    told = ", ".join(f"{pool.name}: {pool.generation}" for pool in scene.slice_pools())
    return yes(f"the newest generation counts ({told})") if told else no("no slices")


def older_gone(scene: Scene) -> Proof:
    """Only the newest generation is left."""
    found = older_beside(scene)
    if found.proved:
        return no("the older slice is still there", *found.evidence)
    return newest_counts(scene)


def under_way(scene: Scene) -> Proof:
    """A move of the node has changed something."""
    if any(step != "quiescing" for move in scene.moves for step, _ in move.steps):
        return yes("the node is past quiescing")
    return no("no move of this node has gone past quiescing since this began")


def turned_round(scene: Scene) -> Proof:
    """It was turned back, or a move the other way began."""
    ways = {way for move in scene.moves if not move.cancelled for _, way in move.steps}
    if len(ways) > 1:
        return yes("it is on its way back")
    return no("it was not turned back")


def as_before(scene: Scene) -> Proof:
    """No move is open, the last one arrived, and the owner is who it was."""
    if any(not move.ended for move in scene.moves):
        return no("its move has not ended")
    if scene.moves and scene.moves[-1].ended != "done":
        return never(f"its move ended as {scene.moves[-1].ended}")
    before = scene.baseline.get("owner", "")
    if scene.owner != before:
        return no(f"its devices are {scene.owner or 'nobody'}'s, and were {before}'s")
    return yes(f"its devices are {before}'s again")


def collected(scene: Scene) -> Proof:
    """What happened is kept."""
    return yes("evidence is kept", scene.bundle) if scene.bundle else no("not collected yet")


def _ready(pod: Pod) -> bool:
    return read_pod_status(pod.raw).is_true("Ready") and pod.meta.deleted is None


def _not_ready_since(pod: Pod) -> datetime | None:
    found = read_pod_status(pod.raw).conditions.get("Ready")
    return found.at if found is not None and not found.true else None
