"""The drills: guided steps, and the one observation that proves each. Pure.

A step that somebody does says what, in words with `{names}` that the page fills in; Berth only
watches. What Berth does itself is safe on any cluster. A step that is not seen within its patience
fails the drill, and one that is refuted fails it at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from devices.dra.conversion import Proof, Verdict
from migrationplan.drills import seen
from migrationplan.drills.scene import Scene
from migrationplan.drills.words import Act, Kind

Seen = Callable[[Scene], Proof]
PERSON: Final = timedelta(hours=1)
SOON: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Step:
    """One step: `do` is what a person does (empty: it follows by itself), `shell` the same as
    commands, `act` what Berth does instead, `seen` what proves it.
    """

    slug: str
    title: str
    seen: Seen
    do: str = ""
    shell: str = ""
    act: Act | None = None
    patience: timedelta = SOON


@dataclass(frozen=True, slots=True)
class Drill:
    """One kind. `why` is what it proves, `touches` what it does to whoever works there."""

    kind: Kind
    name: str
    why: str
    touches: str
    steps: tuple[Step, ...]

    def at(self, position: int) -> Step | None:
        """The step at a position; None where all are done."""
        return self.steps[position] if position < len(self.steps) else None


AT_WORK: Final = Step(
    "ready", "Node and driver are well", seen.at_work, patience=timedelta(minutes=2)
)
TIDY: Final = Step(
    "tidied",
    "Nothing of the drill is left",
    seen.tidied,
    do="Delete what you made for it.",
    patience=PERSON,
)
_EDIT = "kubectl -n {namespace} edit --subresource=status resourceclaim {mark}"

DRILLS: Final[Mapping[Kind, Drill]] = {
    one.kind: one
    for one in (
        Drill(
            Kind.DRIVER_RESTART,
            "The driver restarts",
            "That a new version of the driver can be rolled out: Pods run on, and it publishes"
            " again.",
            "New Pods on this node wait for some seconds. Running ones are not touched.",
            (
                AT_WORK,
                Step(
                    "stopped",
                    "The driver's Pod is gone",
                    seen.driver_gone,
                    do="Delete the driver's Pod on {node}; its DaemonSet makes another.",
                    shell="kubectl delete pod -n {driver_namespace} {driver_pod}",
                    patience=PERSON,
                ),
                Step("started", "Another one is Ready", seen.driver_back),
                Step("published", "Every device is published", seen.at_work),
                Step("kept", "No container was started again", seen.nothing_restarted),
            ),
        ),
        Drill(
            Kind.NODE_LOSS,
            "A node is lost",
            "That a silent node is noticed, and counts for nothing until it is whole again.",
            "Kubernetes ends Pods of a node that stays away for five minutes: end it before.",
            (
                AT_WORK,
                Step(
                    "silent",
                    "Kubernetes calls the node not Ready",
                    seen.node_silent,
                    do="Stop the kubelet of {node}, or cut the machine off.",
                    shell="systemctl stop kubelet   # on {node}",
                    patience=PERSON,
                ),
                Step("noticed", "Berth names the node", seen.loss_noticed),
                Step(
                    "back",
                    "Node and driver are well again",
                    seen.at_work,
                    do="Start it again.",
                    shell="systemctl start kubelet   # on {node}",
                    patience=PERSON,
                ),
                Step("whole", "Nothing is held that nobody has", seen.nothing_leaked),
            ),
        ),
        Drill(
            Kind.DUPLICATE_ALLOCATION,
            "One device, two claims",
            "That Berth sees a device that was given twice, which Kubernetes itself never says.",
            "One idle device of the pool, for as long as it takes. No Pod uses it.",
            (
                Step(
                    "made",
                    "Berth finds it",
                    seen.allocated_twice,
                    do="Make claims {mark}-a and {mark}-b of class {device_class}, and write the"
                    " same idle device of {node} into the status of both.",
                    shell="kubectl -n {namespace} edit --subresource=status resourceclaim"
                    " {mark}-a {mark}-b",
                    patience=PERSON,
                ),
                Step("told", "The leak board has it", seen.on_the_board),
                TIDY,
            ),
        ),
        Drill(
            Kind.LEAKED_CLAIM,
            "A claim that nobody uses",
            "That a device which is held for nobody is found, and given back.",
            "One idle device of the pool, for as long as it takes.",
            (
                Step(
                    "made",
                    "Berth finds it",
                    seen.leak_made,
                    do="Make claim {mark} of class {device_class}, and write an idle device of"
                    " {node} into its status, reserved for nobody.",
                    shell=_EDIT,
                    patience=PERSON,
                ),
                Step("told", "The leak board has it", seen.on_the_board),
                Step(
                    "tidied",
                    "It was given back",
                    seen.tidied,
                    do="Clean it up from the leak board.",
                    patience=PERSON,
                ),
            ),
        ),
        Drill(
            Kind.CROSS_NAMESPACE,
            "Somebody else's claim",
            "That a Pod cannot use a claim of another namespace by its name.",
            "Nobody: Berth makes one Pod of its own, which gets nothing, and takes it away.",
            (
                Step("tried", "A Pod asks for it", seen.tried_across, act=Act.TRY_ACROSS),
                Step("refused", "It gets nothing", seen.kept_out, act=Act.TRY_ACROSS),
                Step("tidied", "The Pod is gone", seen.tidied, act=Act.TIDY),
            ),
        ),
        Drill(
            Kind.STALE_SLICE,
            "Slices that nobody keeps",
            "That what a driver published before it fell silent is not taken for the present.",
            "New Pods on this node wait. Running ones are not touched.",
            (
                AT_WORK,
                Step(
                    "stale",
                    "The driver is not Ready for a minute",
                    seen.stale,
                    do="Make the driver's Pod on {node} not Ready, and leave its slices: stop its"
                    " process without ending the Pod.",
                    shell="crictl ps --name {driver_container}   # on {node}; then kill -STOP",
                    patience=PERSON,
                ),
                Step(
                    "mended",
                    "Node and driver are well again",
                    seen.at_work,
                    do="Let it go on, or delete the Pod.",
                    patience=PERSON,
                ),
                Step("kept", "No container was started again", seen.nothing_restarted),
            ),
        ),
        Drill(
            Kind.GENERATION_REGRESSION,
            "An older generation comes back",
            "That slices of an older generation beside the newest change nothing.",
            "Nobody: the newest generation goes on to count.",
            (
                AT_WORK,
                Step(
                    "older",
                    "An older slice is there",
                    seen.older_beside,
                    do="Create a copy of a slice of {node} with the generation before.",
                    shell="kubectl get resourceslice -o yaml   # lower pool.generation, create",
                    patience=PERSON,
                ),
                Step("refused", "The newest generation counts", seen.newest_counts),
                Step(
                    "gone",
                    "Only the newest is left",
                    seen.older_gone,
                    do="Drivers delete it by themselves; else delete it.",
                    patience=PERSON,
                ),
            ),
        ),
        Drill(
            Kind.ROLLBACK,
            "Rollback is rehearsed",
            "That a node in the middle of its way goes back, keeps what runs, and leaves evidence.",
            "The node takes no new Pods until it is back. Nobody is evicted.",
            (
                Step(
                    "changed",
                    "The node is past quiescing",
                    seen.under_way,
                    do="Begin a move of {node} on its node pool's page.",
                    patience=timedelta(days=1),
                ),
                Step(
                    "turned",
                    "It is on its way back",
                    seen.turned_round,
                    do="Turn it back on its page.",
                    patience=PERSON,
                ),
                Step(
                    "back",
                    "Its devices are whose they were",
                    seen.as_before,
                    patience=timedelta(hours=8),
                ),
                Step("kept", "The evidence is kept", seen.collected, act=Act.COLLECT),
            ),
        ),
    )
}


def look(step: Step, scene: Scene) -> Proof:
    """Whether a step is proved; not known while nobody hears the cluster."""
    if scene.unheard:
        return Proof(Verdict.NOT_KNOWN, scene.unheard)
    return step.seen(scene)
