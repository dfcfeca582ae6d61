"""Drills by their rules: what proves a step, what refutes it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from devices.dra.conversion import Verdict
from migrationplan.drills.kinds import DRILLS, look
from migrationplan.drills.scene import MoveSeen
from migrationplan.drills.words import Kind
from tests.factories import NOON
from tests.migrationplan.drills.scenes import (
    ACROSS,
    BACK,
    BASE,
    MARK,
    NEW,
    NO_DRIVER,
    RESTARTED,
    TAKEN,
    THERE,
    WELL,
    but,
    mine,
    scene,
)
from tests.migrationplan.keeping import a_claim, a_driver, a_node, a_slice  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "step", "objects", "more", "verdict"),
    [
        pytest.param("driver restart", "ready", WELL, {}, "proved", id="all is well"),
        pytest.param(
            "driver restart", "ready", but(a_node(ready=False)), {}, "not yet", id="a silent node"
        ),
        pytest.param("driver restart", "stopped", WELL, {}, "not yet", id="the same driver"),
        pytest.param("driver restart", "stopped", NO_DRIVER, {}, "proved", id="no driver"),
        pytest.param(
            "driver restart", "stopped", but(a_driver(started="10:30:00")), {}, "proved",
            id="its container was started again",
        ),
        pytest.param(
            "driver restart", "stopped", WELL, {"baseline": {**BASE, "drivers": {}}}, "refuted",
            id="there was none to begin with",
        ),
        pytest.param("driver restart", "started", NO_DRIVER, {}, "not yet", id="none yet"),
        pytest.param("driver restart", "started", [*NO_DRIVER, NEW], {}, "proved", id="a new one"),
        pytest.param(
            "driver restart", "started", [*NO_DRIVER, a_driver("u-another", ready=False)], {},
            "not yet", id="a new one that is not Ready",
        ),
        pytest.param("driver restart", "kept", WELL, {}, "proved", id="Pods run on"),
        pytest.param(
            "driver restart", "kept", but(RESTARTED), {}, "refuted", id="a container restarted"
        ),
        pytest.param(
            "driver restart", "kept", [a_node()], {}, "refuted", id="nobody is left to tell"
        ),
        pytest.param("node loss", "silent", WELL, {}, "not yet", id="the node is Ready"),
        pytest.param(
            "node loss", "silent", but(a_node(ready=False)), {}, "proved", id="it is silent"
        ),
        pytest.param("node loss", "silent", [a_slice()], {}, "refuted", id="it is not there"),
        pytest.param(
            "node loss", "noticed", but(a_node(ready=False)), {}, "proved", id="it is named"
        ),
        pytest.param("node loss", "whole", WELL, {}, "proved", id="nothing leaked"),
        pytest.param(
            "node loss", "whole", [*WELL, a_claim("c9", "gpu-1")], {}, "not yet", id="a leak"
        ),
        pytest.param("duplicate allocation", "made", WELL, {}, "not yet", id="nothing doubled"),
        pytest.param(
            "duplicate allocation", "made", [*WELL, mine("-a"), mine("-b")], {}, "proved",
            id="two claims hold one device",
        ),
        pytest.param(
            "duplicate allocation", "made", [*WELL, a_claim("x"), a_claim("y")], {}, "not yet",
            id="other people's doubles are not this drill's",
        ),
        pytest.param(
            "duplicate allocation", "told", WELL,
            {"board": (("LEAK_DOUBLE_ALLOCATION", (f"team/{MARK}-a",)),)}, "proved", id="told",
        ),
        pytest.param("leaked claim", "made", [*WELL, mine("")], {}, "proved", id="held for nobody"),
        pytest.param("leaked claim", "told", [*WELL, mine("")], {}, "not yet", id="not told yet"),
        pytest.param("leaked claim", "tidied", [*WELL, mine("")], {}, "not yet", id="still there"),
        pytest.param(
            "leaked claim", "tidied", WELL, {"board": (("LEAK_UNRESERVED", (f"team/{MARK}",)),)},
            "not yet", id="still on the board",
        ),
        pytest.param("leaked claim", "tidied", WELL, {}, "proved", id="given back"),
        pytest.param("cross-namespace attempt", "tried", WELL, {}, "not yet", id="nobody tried"),
        pytest.param(
            "cross-namespace attempt", "refused", [*WELL, ACROSS], {}, "proved", id="kept waiting"
        ),
        pytest.param(
            "cross-namespace attempt", "refused", [*WELL, ACROSS],
            {"since": NOON - timedelta(seconds=5)}, "not yet", id="looked at for a moment only",
        ),
        pytest.param(
            "cross-namespace attempt", "refused", [*WELL, TAKEN], {}, "refuted", id="it was placed"
        ),
        pytest.param(
            "cross-namespace attempt", "refused",
            [*WELL, ACROSS, a_claim("c7", "gpu-1", pod=MARK)], {}, "refuted", id="it was given one",
        ),
        pytest.param(
            "stale slice", "stale", but(a_driver(ready=False)), {}, "proved", id="old by a minute"
        ),
        pytest.param("stale slice", "stale", WELL, {}, "not yet", id="the driver is Ready"),
        pytest.param(
            "stale slice", "stale", [a_node()], {}, "refuted", id="the slices are gone too"
        ),
        pytest.param(
            "generation regression", "older", [*WELL, a_slice(1, "old")], {}, "proved", id="older"
        ),
        pytest.param(
            "generation regression", "refused", [*WELL, a_slice(1, "old")], {}, "proved",
            id="the newest counts",
        ),
        pytest.param(
            "generation regression", "refused", but(a_slice(1)), {}, "refuted", id="it went back"
        ),
        pytest.param(
            "generation regression", "gone", [*WELL, a_slice(1, "old")], {}, "not yet",
            id="the older one is still there",
        ),
        pytest.param("generation regression", "gone", WELL, {}, "proved", id="only the newest"),
        pytest.param(
            "rollback rehearsal", "changed", WELL,
            {"moves": (MoveSeen((("quiescing", "to DRA"),), "", False),)}, "not yet",
            id="quiescing changes nothing",
        ),
        pytest.param(
            "rollback rehearsal", "turned", WELL, {"moves": (MoveSeen((THERE, BACK), "", False),)},
            "proved", id="turned back",
        ),
        pytest.param(
            "rollback rehearsal", "back", WELL, {"moves": (MoveSeen((THERE, BACK), "", False),)},
            "not yet", id="on its way back",
        ),
        pytest.param(
            "rollback rehearsal", "back", WELL,
            {"moves": (MoveSeen((THERE, BACK), "done", False),)}, "proved", id="back",
        ),
        pytest.param(
            "rollback rehearsal", "back", WELL,
            {"moves": (MoveSeen((THERE, BACK), "lost", False),)}, "refuted", id="the machine died",
        ),
        pytest.param(
            "rollback rehearsal", "back", WELL,
            {"moves": (MoveSeen((THERE, BACK), "done", False),), "owner": "none"}, "not yet",
            id="nobody owns it",
        ),
    ],
)  # fmt: skip
def test_what_proves_a_step(
    kind: str, step: str, objects: Any, more: dict[str, Any], verdict: str
) -> None:
    [about] = [one for one in DRILLS[Kind(kind)].steps if one.slug == step]
    seen = scene(*objects, **{"baseline": BASE, **more})
    found = look(about, seen)
    assert (found.verdict.value, bool(found.why)) == (verdict, True), found
    deaf = replace(seen, look=replace(seen.look, heard={}))
    assert look(about, deaf).verdict is Verdict.NOT_KNOWN, "no news is not good news"


@pytest.mark.parametrize("kind", Kind)
def test_every_drill_has_steps_of_its_own_words(kind: Kind) -> None:
    about = DRILLS[kind]
    slugs = [step.slug for step in about.steps]
    assert len(slugs) == len(set(slugs)) and about.at(len(slugs)) is None
    assert any(step.do or step.act for step in about.steps)
