"""The conversion of one node between device plugin and DRA driver, both ways. Pure.

Each step asks for a state of affairs and waits for its one proof (`devices.dra.conversion`), which
was asked of real kubelets. A decision moves, or asks for actions, never both; actions say how
things should be and are asked for again until they are seen. So a lost or a doubled turn changes
nothing. What is refuted, or not proved in time, calls a person, and the node stays where it is,
closed.

Never is the driver called to a node whose plugin is not proved off or whose devices a Pod holds by
the plugin, nor the plugin to one that the driver has not left, or where a claim holds devices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from devices.dra.conversion import (
    Look,
    Proof,
    Verdict,
    canary_proves,
    claims_are_free,
    driver_claims,
    driver_is_off,
    memory_is_clean,
    no_plugin_holders,
    plugin_holders,
    plugin_is_off,
    plugin_is_on,
    settling_is_over,
    slices_are_complete,
    slices_are_gone,
    taint_holds,
)
from devices.dra.names import FREEZE_MARK, MOVE_LABEL, QUIESCING_TAINT, SYSTEM_NAMESPACE
from devices.dra.snapshot import NODE
from migrationplan.steps import (
    PATIENCE,
    REFUTED,
    SETTLING_PATIENCE,
    TAINT_PATIENCE,
    TIMED_OUT,
    WAYS,
    Act,
    Conversion,
    Decision,
    Direction,
    Step,
)

#: The plugin is not off, or will not be: the moment at which it stopped is no more than history.
FORGOTTEN: Final[Mapping[str, datetime | None]] = {"plugin_off": None}


def decide(conversion: Conversion, look: Look, now: datetime) -> Decision:
    """What comes next for a conversion that has not ended."""
    if conversion.called:
        return Decision("a person was called", called=conversion.called)
    if lost := _lost(conversion, look, now):
        return lost
    return RULES[conversion.step](conversion, look, now)


def _lost(conversion: Conversion, look: Look, now: datetime) -> Decision | None:
    """The machine is gone, or another one has its name: nothing of it is to be converted."""
    heard = look.heard.get(NODE)
    if heard is None or now - heard > look.fresh:
        return None  # no news is not good news, and not bad news either
    node = look.snapshot.nodes.get(conversion.place.node)
    if node is not None and node.uid == conversion.place.uid:
        return None
    words = "is not there any more" if node is None else "is another machine now"
    return Decision(f"node {conversion.place.node} {words}", move=Step.LOST)


# --- one rule per step ---


def _quiescing(at: Conversion, look: Look, now: datetime) -> Decision:
    """Closed to new Pods, and empty at two looks. Nobody is evicted."""
    if at.cancelled:
        return Decision("it is opened again, as it was", move=Step.OPENING)
    acts: tuple[Act, ...] = (Act.CLOSE, Act.TRY_TAINT)
    if at.direction is Direction.TO_PLUGIN and _needs_driver(at, look, now):
        acts = (*acts, Act.DRIVER_ON)
    off = {} if at.plugin_off is None or plugin_is_off(at.place, look, now).proved else FORGOTTEN
    holds = taint_holds(at.place, look, now, taint=QUIESCING_TAINT, trial=at.trial)
    if not holds.proved:
        late = now - at.since > TAINT_PATIENCE and at.empty_since is None
        return _wait(at, holds, acts, now, late=late, remember={"empty_since": None, **off})
    empty = _empty(at, look, now)
    if empty.proved:
        return Decision(empty.why, move=_next(at), remember=off)
    first = empty.again is not None or empty.verdict is Verdict.NOT_KNOWN
    since = (at.empty_since or now) if first else None
    asks = acts
    if empty.verdict is Verdict.NOT_KNOWN and at.empty_since is not None:
        asks = (*acts, Act.PROBE)
    return _wait(at, empty, asks, now, remember={"empty_since": since, **off})


def _needs_driver(at: Conversion, look: Look, now: datetime) -> bool:
    """Whether claims hold devices of a driver that has to end them, and no plugin is in its way."""
    here, _ = driver_claims(at.place, look.snapshot)
    return bool(here) and plugin_is_off(at.place, look, now).proved


def _empty(at: Conversion, look: Look, now: datetime) -> Proof:
    if at.direction is Direction.TO_DRA:
        return no_plugin_holders(at.place, look, now, empty_since=at.empty_since, times=at.times)
    report = at.reports[-1] if at.reports else None
    return claims_are_free(
        at.place, look, now, empty_since=at.empty_since, report=report, times=at.times
    )


def _plugin_off(at: Conversion, look: Look, now: datetime) -> Decision:
    if plugin_holders(at.place, look.snapshot) and at.plugin_off is None:
        return _back_to_quiescing(at, look, "a Pod holds a device of the plugin again")
    off = plugin_is_off(at.place, look, now)
    if off.proved:
        # Turned back twice it may have been off all the time: the five minutes began then.
        return Decision(off.why, move=_next(at), remember={"plugin_off": at.plugin_off or now})
    return _wait(at, off, (Act.CLOSE, Act.PLUGIN_OFF), now, remember=FORGOTTEN)


def _node_proof(at: Conversion, look: Look, now: datetime) -> Decision:
    """The node itself is asked, in time: its kubelet forgets the plugin's allocations for good."""
    assert at.plugin_off is not None
    clean = memory_is_clean(at.place, at.reports, plugin_off=at.plugin_off, times=at.times)
    if clean.proved:
        return Decision(clean.why, move=_next(at))
    return _wait(at, clean, (Act.CLOSE, Act.PLUGIN_OFF, Act.PROBE), now)


def _driver_on(at: Conversion, look: Look, now: datetime) -> Decision:
    """Never while the plugin may be there, or a Pod holds a device of it."""
    off = plugin_is_off(at.place, look, now)
    if not off.proved:
        return _wait(at, off, (Act.CLOSE, Act.PLUGIN_OFF, Act.DRIVER_OFF), now)
    if holders := plugin_holders(at.place, look.snapshot):
        names = tuple(str(each.pod) for each in holders)
        held = Proof(Verdict.NOT_YET, "Pods hold devices of the plugin", names)
        return _wait(at, held, (Act.CLOSE, Act.PLUGIN_OFF, Act.DRIVER_OFF), now)
    complete = slices_are_complete(at.place, look, now)
    if complete.proved:
        return Decision(complete.why, move=_next(at))
    return _wait(at, complete, (Act.CLOSE, Act.PLUGIN_OFF, Act.DRIVER_ON), now)


def _settling(at: Conversion, look: Look, now: datetime) -> Decision:
    """Five minutes in which a kubelet may still remember: a canary within them proves nothing."""
    assert at.plugin_off is not None
    over = settling_is_over(
        at.place, look, now, plugin_off=at.plugin_off, reports=at.reports, times=at.times
    )
    if over.proved:
        return Decision(over.why, move=_next(at))
    asks = (Act.CLOSE, Act.PROBE) if over.verdict is Verdict.NOT_KNOWN else (Act.CLOSE,)
    late = now - at.since > at.times.settling + SETTLING_PATIENCE
    return _wait(at, over, asks, now, late=late)


def _driver_off(at: Conversion, look: Look, now: datetime) -> Decision:
    """Never while a claim holds devices: its Pods could not end."""
    here, somewhere = driver_claims(at.place, look.snapshot)
    if here or somewhere:
        return _back_to_quiescing(at, look, "a claim holds devices of the driver again")
    off = driver_is_off(at.place, look, now)
    if off.proved:
        return Decision(off.why, move=_next(at))
    return _wait(at, off, (Act.CLOSE, Act.DRIVER_OFF), now)


def _slices_gone(at: Conversion, look: Look, now: datetime) -> Decision:
    here, _ = driver_claims(at.place, look.snapshot)
    if here:
        return _back_to_quiescing(at, look, "a claim holds devices of a driver that was stopped")
    gone = slices_are_gone(at.place, look, now)
    if gone.proved:
        return Decision(gone.why, move=_next(at))
    return _wait(at, gone, (Act.CLOSE, Act.DRIVER_OFF), now)


def _plugin_on(at: Conversion, look: Look, now: datetime) -> Decision:
    """Never while the driver may be there, or a claim holds devices."""
    here, _ = driver_claims(at.place, look.snapshot)
    if here:
        return _back_to_quiescing(at, look, "a claim holds devices of the driver")
    gone = slices_are_gone(at.place, look, now)
    if not gone.proved:
        return _wait(at, gone, (Act.CLOSE, Act.DRIVER_OFF, Act.PLUGIN_OFF), now)
    on = plugin_is_on(at.place, look, now)
    if on.proved:
        return Decision(on.why, move=_next(at))
    return _wait(at, on, (Act.CLOSE, Act.DRIVER_OFF, Act.PLUGIN_ON), now, remember=FORGOTTEN)


def _verifying(at: Conversion, look: Look, now: datetime) -> Decision:
    """A Pod of Berth's own that tolerates the taint gets a device by the new path, and runs."""
    acts = (Act.CLOSE, Act.CANARY)
    if at.canary is None:
        return Decision("a canary Pod is made", acts=acts)
    runs = canary_proves(
        at.place, look, now, canary=at.canary, since=at.since, path=at.direction.path
    )
    if runs.proved:
        return Decision(runs.why, move=_next(at), evidence=runs.evidence)
    return _wait(at, runs, acts, now)


def _opening(at: Conversion, look: Look, now: datetime) -> Decision:
    """Open again, and nothing of Berth's own is left on it."""
    node = look.snapshot.nodes.get(at.place.node)
    # A frozen node pool stays closed; what is opened here is what the move closed.
    closed = node is None or any(
        taint.key == QUIESCING_TAINT and not taint.value.startswith(FREEZE_MARK)
        for taint in node.taints
    )
    left = tuple(
        str(pod)
        for pod in look.snapshot.pods.values()
        if pod.meta.namespace == SYSTEM_NAMESPACE and pod.meta.labels.get(MOVE_LABEL) == at.mark
    )
    if not closed and not left:
        return Decision("the node is open", move=Step.DONE)
    waits = Proof(Verdict.NOT_YET, "the node is being opened", left)
    return _wait(at, waits, (Act.TIDY,) if left else (Act.OPEN,), now)


def _ended(at: Conversion, look: Look, now: datetime) -> Decision:
    return Decision("it has ended", recheck=timedelta(0))


Rule = Callable[[Conversion, Look, datetime], Decision]
RULES: Final[Mapping[Step, Rule]] = {
    Step.QUIESCING: _quiescing,
    Step.PLUGIN_OFF: _plugin_off,
    Step.NODE_PROOF: _node_proof,
    Step.DRIVER_ON: _driver_on,
    Step.SETTLING: _settling,
    Step.DRIVER_OFF: _driver_off,
    Step.SLICES_GONE: _slices_gone,
    Step.PLUGIN_ON: _plugin_on,
    Step.VERIFYING: _verifying,
    Step.OPENING: _opening,
    Step.DONE: _ended,
    Step.LOST: _ended,
}


def _next(at: Conversion) -> Step:
    way = WAYS[at.direction]
    return way[way.index(at.step) + 1]


def _back_to_quiescing(at: Conversion, look: Look, why: str) -> Decision:
    """Somebody holds a device after all: wait for them again, with what they need running."""
    return Decision(why, move=Step.QUIESCING, remember={"empty_since": None})


def _wait(
    at: Conversion,
    proof: Proof,
    acts: tuple[Act, ...],
    now: datetime,
    *,
    late: bool | None = None,
    remember: Mapping[str, datetime | None] | None = None,
) -> Decision:
    """Asks again, or calls a person: where waiting cannot help, or was too long."""
    called = ""
    if proof.verdict is Verdict.REFUTED:
        called = str(proof.code) if proof.code else REFUTED
    elif late if late is not None else now - at.since > PATIENCE.get(at.step, timedelta.max):
        called = TIMED_OUT
    recheck = timedelta(seconds=2)
    if proof.again is not None and proof.again > now:
        recheck = min(max(proof.again - now, recheck), timedelta(seconds=20))
    return Decision(
        proof.why,
        acts=() if called else acts,
        evidence=proof.evidence,
        called=called,
        remember=dict(remember or {}),
        recheck=recheck,
    )


def turned_back(at: Conversion, *, changed: bool) -> Conversion:
    """The same node on its way back, from wherever it stands: nothing is undone by halves.

    While it only waits for Pods, and nothing was `changed` since it began, it is opened again.
    Later it goes the whole other way, which begins by waiting for whoever got a device meanwhile.
    """
    if at.step is Step.QUIESCING and not changed:
        return replace(at, cancelled=True, called="")
    other = Direction.TO_PLUGIN if at.direction is Direction.TO_DRA else Direction.TO_DRA
    return replace(
        at,
        direction=other,
        step=Step.QUIESCING,
        called="",
        empty_since=None,
        cancelled=False,
    )
