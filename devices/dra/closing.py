"""The steps by which a tenant is closed: what is seen now → what to do next. Pure.

A decision moves or asks for acts, never both: a move is written down, and the next look decides
afresh. Acts say how things should be and are asked for again until that is seen, so a turn may be
lost, doubled, or die between any two of them. Nothing is evicted, and no claim is let go of while a
living Pod holds it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final


class Phase(StrEnum):
    """Where a closing stands."""

    ASKED = "asked"  # an owner asked for it; nothing has changed
    STOPPING = "stopping"  # namespaces are being closed to new work
    WAITING = "waiting"  # Pods that use devices still run
    RECLAIMING = "reclaiming"  # claims and templates are taken out of the cluster
    LETTING_GO = "letting go"  # quotas and labels are taken off the namespaces
    CLOSED = "closed"
    CANCELLED = "cancelled"


MOVES: Final[dict[Phase, frozenset[Phase]]] = {
    Phase.ASKED: frozenset({Phase.STOPPING, Phase.CANCELLED}),
    Phase.STOPPING: frozenset({Phase.WAITING, Phase.CANCELLED}),
    Phase.WAITING: frozenset({Phase.RECLAIMING, Phase.CANCELLED}),
    # From here on something is gone for good, so there is no way back.
    Phase.RECLAIMING: frozenset({Phase.LETTING_GO}),
    Phase.LETTING_GO: frozenset({Phase.CLOSED}),
    Phase.CLOSED: frozenset(),
    Phase.CANCELLED: frozenset(),
}
OVER: Final = frozenset({Phase.CLOSED, Phase.CANCELLED})
#: Phases in which a turn has something to do.
UNDER_WAY: Final = frozenset(
    {Phase.STOPPING, Phase.WAITING, Phase.RECLAIMING, Phase.LETTING_GO},
)
#: Kubernetes' own finalizer of claims: it goes with the last Pod.
OWN_FINALIZERS: Final = frozenset({"resource.kubernetes.io/delete-protection"})


def moves() -> list[tuple[Phase, Phase]]:
    """Every allowed move, for the database's own check."""
    return sorted((before, after) for before, afters in MOVES.items() for after in afters)


def revocable(phase: Phase) -> bool:
    """Whether it can still be cancelled: nothing has been taken away that cannot come back."""
    return Phase.CANCELLED in MOVES[phase]


@dataclass(frozen=True, slots=True)
class Place:
    """A namespace. `shut`: the cluster lets nothing new begin there (or it is not there any more).

    `off`: it carries nothing of Berth's. `code` and `why` say what keeps it from either.
    """

    name: str
    shut: bool = False
    off: bool = False
    code: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Holder:
    """A Pod that has not finished and uses devices.

    `uses` are the claims and templates that it names, those made for it, and the ask whose label
    it carries.
    """

    namespace: str
    name: str
    uses: frozenset[str] = frozenset()
    ends_at: datetime | None = None
    leaving: bool = False

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Thing:
    """An object of an ask as the API server has it; `reserved` names Pods in status.reservedFor."""

    kind: str
    namespace: str
    name: str
    ask: str
    reserved: tuple[str, ...] = ()
    deleting: bool = False
    finalizers: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Ask:
    """An ask of the tenant that has not ended.

    `sent`: it was in the cluster once. `let_go`: it is to leave it.
    """

    public_id: str
    name: str
    namespace: str
    sent: bool = True
    let_go: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """One look at a tenant that is being closed.

    `bonds_ended`: grants, tokens, invitations and open approvals have been ended.
    """

    places: tuple[Place, ...] = ()
    pods: tuple[Holder, ...] = ()
    things: tuple[Thing, ...] = ()
    asks: tuple[Ask, ...] = ()
    bonds_ended: bool = False


@dataclass(frozen=True, slots=True)
class Blocker:
    """What a closing waits for: a stable code, the thing by name, a sentence, its end if known."""

    code: str
    subject: str
    why: str
    ends_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class EndBonds:
    """End grants on both sides, revoke tokens and invitations, void open approvals."""


@dataclass(frozen=True, slots=True)
class Release:
    """Let go of an ask: its objects leave the cluster. Those of one that is not `there` any more
    somebody else has taken away already, which only has to be recorded.
    """

    public_id: str
    there: bool = True


@dataclass(frozen=True, slots=True)
class TakeOff:
    """Delete Berth's quota in a namespace and take Berth's names off it."""

    place: str


Act = EndBonds | Release | TakeOff


@dataclass(frozen=True, slots=True)
class Decision:
    """Where to move, or what to do, and what is waited for meanwhile."""

    move: Phase | None = None
    acts: tuple[Act, ...] = ()
    blockers: tuple[Blocker, ...] = ()


def decide(phase: Phase, seen: Seen) -> Decision:
    """The next step of a closing in `phase`; nothing where it has not begun or is over."""
    match phase:
        case Phase.STOPPING:
            return _next(Phase.WAITING, blockers=_open_places(seen.places))
        case Phase.WAITING:
            return _next(Phase.RECLAIMING, blockers=(*_running(seen.pods), *_reserved(seen)))
        case Phase.RECLAIMING:
            return _reclaim(seen)
        case Phase.LETTING_GO:
            return _let_go(seen.places)
    return Decision()


def held(ask: Ask, seen: Seen) -> bool:
    """Whether a living Pod holds anything of an ask, or the cluster has reserved it for one."""
    names = {thing.name for thing in seen.things if thing.ask == ask.public_id} | {ask.public_id}
    return any(
        pod.namespace == ask.namespace and not names.isdisjoint(pod.uses) for pod in seen.pods
    ) or any(thing.reserved for thing in seen.things if thing.ask == ask.public_id)


def _next(phase: Phase, *, blockers: tuple[Blocker, ...]) -> Decision:
    return Decision(blockers=blockers) if blockers else Decision(move=phase)


def _reclaim(seen: Seen) -> Decision:
    acts: list[Act] = [] if seen.bonds_ended else [EndBonds()]
    blockers = [*_running(seen.pods), *_reserved(seen)]
    for ask in seen.asks:
        if ask.let_go:
            blockers += _leaving(ask, seen)
        elif not held(ask, seen):
            there = any(thing.ask == ask.public_id for thing in seen.things)
            acts.append(Release(ask.public_id, there=there or not ask.sent))
    if acts or blockers or seen.asks:
        return Decision(acts=tuple(acts), blockers=tuple(blockers))
    return Decision(move=Phase.LETTING_GO)


def _let_go(places: Iterable[Place]) -> Decision:
    left = [place for place in places if not place.off]
    if not left:
        return Decision(move=Phase.CLOSED)
    return Decision(
        acts=tuple(TakeOff(place.name) for place in left),
        blockers=tuple(
            Blocker(place.code, f"Namespace {place.name}", place.why)
            for place in left
            if place.code
        ),
    )


def _open_places(places: Iterable[Place]) -> tuple[Blocker, ...]:
    return tuple(
        Blocker(
            place.code or "NAMESPACE_OPEN",
            f"Namespace {place.name}",
            place.why or "The cluster has not been told yet that nothing new may begin here.",
        )
        for place in places
        if not place.shut
    )


def _running(pods: Iterable[Holder]) -> tuple[Blocker, ...]:
    return tuple(
        Blocker(
            "POD_LEAVING" if pod.leaving else "POD_RUNNING",
            f"Pod {pod}",
            "It is being deleted and has not ended yet."
            if pod.leaving
            else "It uses devices. Nothing is evicted: it ends by itself, or its owner ends it.",
            pod.ends_at,
        )
        for pod in sorted(pods, key=str)
    )


def _reserved(seen: Seen) -> tuple[Blocker, ...]:
    """Claims that the cluster has reserved for Pods which no list shows: they count as in use."""
    shown = {(pod.namespace, pod.name) for pod in seen.pods}
    return tuple(
        Blocker(
            "CLAIM_RESERVED",
            str(thing),
            f"The cluster has it reserved for {', '.join(unseen)}, which no list shows; "
            "the claim controller clears that when the Pod is gone.",
        )
        for thing in seen.things
        if (unseen := [name for name in thing.reserved if (thing.namespace, name) not in shown])
    )


def _leaving(ask: Ask, seen: Seen) -> list[Blocker]:
    """What keeps an ask that was let go of: finalizers of others, or the cluster taking its time.

    Pods are named elsewhere: they are waited for in any case.
    """
    things = [thing for thing in seen.things if thing.ask == ask.public_id]
    if not things:
        why = "Its release is being recorded."
        return [Blocker("RELEASING", f"Ask {ask.namespace}/{ask.name}", why)]
    found = []
    for thing in things:
        strange = [name for name in thing.finalizers if name not in OWN_FINALIZERS]
        if thing.deleting and strange:
            why = (
                f"It is deleted, and kept by {', '.join(strange)}. Whoever put that on it must "
                "take it off; Berth does not."
            )
            found.append(Blocker("FINALIZER", str(thing), why))
        else:
            found.append(Blocker("RELEASING", str(thing), "Kubernetes is taking it away."))
    return found
