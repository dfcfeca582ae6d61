"""Proofs about the driver: whether it may stop, whether it is gone, whether it is at work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.dra.conversion import (
    Look,
    NodeReport,
    Place,
    Proof,
    claims_are_free,
    driver_is_off,
    slices_are_complete,
    slices_are_gone,
    uses,
)
from tests.devices.dra.conversion.scene import (
    DRIVER,
    NOW,
    PLACE,
    RESOURCE,
    Obj,
    Scene,
    a_claim,
    a_daemon,
    a_node,
    a_pod,
    a_report,
    a_slice,
    ago,
    scene,
    told,
)

ONE = {RESOURCE: "1"}
LONG = ago(seconds=40)
CLEAN = a_report(began=ago(seconds=1))
HOLDS = "1 claim holds devices of the driver"
ENDING = "1 Pod with claims is still ending"


@pytest.mark.parametrize(
    "seen, empty_since, report, verdict, why",
    [
        pytest.param(
            scene(a_slice()),
            LONG,
            CLEAN,
            "proved",
            "no claim allocated or prepared; empty for 40 s",
            id="no claim, twice, and the node says the same",
        ),
        pytest.param(
            scene(a_slice(), a_claim()), LONG, CLEAN, "not yet", HOLDS, id="a claim in its pool"
        ),
        pytest.param(
            scene(a_slice(), a_claim(held=False)),
            LONG,
            CLEAN,
            "proved",
            "no claim allocated or prepared; empty for 40 s",
            id="a claim that holds nothing",
        ),
        pytest.param(
            scene(a_slice(), a_slice(node="m"), a_claim(pool="m")),
            LONG,
            CLEAN,
            "proved",
            "no claim allocated or prepared; empty for 40 s",
            id="a claim in another node's pool",
        ),
        pytest.param(
            scene(a_slice(), a_claim(driver="other.example.com")),
            LONG,
            CLEAN,
            "proved",
            "no claim allocated or prepared; empty for 40 s",
            id="a claim of another driver",
        ),
        pytest.param(
            scene(a_claim(pool="n", pin="n")),
            LONG,
            CLEAN,
            "not yet",
            HOLDS,
            id="a claim whose pool is gone, pinned to this node",
        ),
        pytest.param(
            scene(a_claim(pool="n", pin="m")),
            LONG,
            CLEAN,
            "proved",
            "no claim allocated or prepared; empty for 40 s",
            id="a claim whose pool is gone, pinned to another node",
        ),
        pytest.param(
            scene(a_claim(pool="lost")),
            LONG,
            CLEAN,
            "not known",
            "claims of the driver name no node that is known",
            id="a claim of which nobody can tell where its device is",
        ),
        pytest.param(
            scene(a_slice(), a_claim(held=False), a_pod("p", claim="gone", deleted=True)),
            LONG,
            CLEAN,
            "not yet",
            ENDING,
            id="a Pod that is ending and whose claim is gone",
        ),
        pytest.param(
            scene(a_slice(), a_claim(driver="other"), a_pod("p", claim="c", deleted=True)),
            LONG,
            CLEAN,
            "proved",
            "no claim allocated or prepared; empty for 40 s",
            id="a Pod that is ending with another driver's claim",
        ),
        pytest.param(
            scene(a_slice()),
            None,
            CLEAN,
            "not yet",
            "empty, and to be looked at a second time",
            id="the first look",
        ),
        pytest.param(
            scene(a_slice()),
            LONG,
            None,
            "not known",
            "the node has not been asked since it looked empty",
            id="what was deleted by force shows on the node only",
        ),
        pytest.param(
            scene(a_slice()),
            LONG,
            a_report(began=ago(seconds=42)),
            "not known",
            "the node has not been asked since it looked empty",
            id="the node was asked before",
        ),
        pytest.param(
            scene(a_slice()),
            LONG,
            a_report(began=ago(seconds=1), claims={DRIVER: 1}),
            "not yet",
            "the node still has 1 claims prepared that the API does not show",
            id="a device that a forced deletion left prepared",
        ),
        pytest.param(
            scene(a_slice()),
            LONG,
            a_report(began=ago(seconds=1), claims={"other": 1}),
            "proved",
            "no claim allocated or prepared; empty for 40 s",
            id="another driver's claim on the node",
        ),
        pytest.param(
            Scene((a_node(),), missing=("ResourceClaim",)),
            LONG,
            CLEAN,
            "not known",
            "no list of ResourceClaims was heard",
            id="an empty list of claims that nobody heard",
        ),
        pytest.param(
            Scene((a_node(),), missing=("ResourceSlice",)),
            LONG,
            CLEAN,
            "not known",
            "no list of ResourceSlices was heard",
            id="without slices nobody knows whose pool it is",
        ),
        pytest.param(
            scene(a_slice()),
            LONG,
            a_report(began=ago(seconds=1), kubelet=ago(seconds=90)),
            "not yet",
            "the kubelet started lately and counts no claim from before",
            id="a kubelet that started a minute and a half ago",
        ),
        pytest.param(
            scene(a_slice()),
            ago(minutes=3),
            a_report(began=ago(minutes=2), kubelet=ago(minutes=3)),
            "not known",
            "the node has to be asked again: its kubelet had just started",
            id="a look that was too soon after the kubelet's start",
        ),
        pytest.param(
            scene(a_slice()),
            ago(minutes=3),
            a_report(began=ago(seconds=30), kubelet=ago(minutes=3)),
            "proved",
            "no claim allocated or prepared; empty for 180 s",
            id="a kubelet that has had its time",
        ),
        pytest.param(
            scene(
                {"kind": "ResourceClaim", "metadata": {"name": "odd"}, "status": {"allocation": 7}}
            ),
            LONG,
            CLEAN,
            "not known",
            "a ResourceClaim could not be read",
            id="a claim that could not be read",
        ),
    ],
)
def test_the_driver_may_stop(
    seen: Scene, empty_since: datetime | None, report: NodeReport | None, verdict: str, why: str
) -> None:
    found = claims_are_free(PLACE, seen.look, NOW, empty_since=empty_since, report=report)
    assert told(found) == (verdict, why)


@pytest.mark.parametrize(
    "objects, off, gone",
    [
        pytest.param([], "proved", "proved", id="no Pod, no slice"),
        pytest.param([a_slice()], "proved", "not yet", id="slices stay for 30 s"),
        pytest.param([a_slice(generation=7)], "proved", "not yet", id="of whatever generation"),
        pytest.param([a_slice(devices=0)], "proved", "not yet", id="an empty slice"),
        pytest.param([a_slice(node="m")], "proved", "proved", id="another node's slice"),
        pytest.param([a_slice(driver="other")], "proved", "proved", id="another driver's slice"),
        pytest.param(
            [a_daemon("gpu-driver")],
            "not yet",
            "not yet",
            id="no slice, but its Pod: a kubelet's restart wiped them, and they come back",
        ),
        pytest.param(
            [a_daemon("gpu-driver", deleted=True)], "not yet", "not yet", id="its Pod is ending"
        ),
    ],
)
def test_the_driver_is_gone(objects: list[Obj], off: str, gone: str) -> None:
    look = scene(*objects).look
    assert driver_is_off(PLACE, look, NOW).verdict == off
    assert slices_are_gone(PLACE, look, NOW).verdict == gone


def test_without_its_daemon_set_s_name_nobody_knows_whether_the_driver_is_off() -> None:
    place = replace(PLACE, driver_sets=())
    assert driver_is_off(place, scene().look, NOW).verdict == "not known"


@pytest.mark.parametrize("proof", [driver_is_off, slices_are_gone, slices_are_complete])
def test_lists_that_nobody_heard_prove_nothing(
    proof: Callable[[Place, Look, datetime], Proof],
) -> None:
    deaf = Scene((a_node(),), missing=("Pod", "ResourceSlice")).look
    assert proof(PLACE, deaf, NOW).verdict == "not known"
    assert proof(PLACE, scene(a_slice(), age=31).look, NOW).verdict == "not known"


@pytest.mark.parametrize(
    "objects, place, verdict, why",
    [
        pytest.param(
            [a_slice(2)], PLACE, "proved", "2 of 2 devices published", id="every device is there"
        ),
        pytest.param(
            [], PLACE, "not yet", "the driver has published nothing", id="nothing is published"
        ),
        pytest.param(
            [a_slice(1)], PLACE, "not yet", "1 of 2 devices published", id="a device is missing"
        ),
        pytest.param(
            [a_slice(0)], PLACE, "not yet", "0 of 2 devices published", id="an empty slice"
        ),
        pytest.param(
            [a_slice(3)], PLACE, "refuted", "3 of 2 devices published", id="more than there are"
        ),
        pytest.param(
            [a_slice(2, resourceSliceCount=2)],
            PLACE,
            "not yet",
            "pool n has 1 of 2 slices",
            id="the pool is half published, although the count is right",
        ),
        pytest.param(
            [a_slice(2, generation=2), a_slice(2)],
            PLACE,
            "not yet",
            "pool n still has older slices",
            id="older slices are still there",
        ),
        pytest.param(
            [a_slice(2)],
            replace(PLACE, hardware=None),
            "not known",
            "nobody recorded how many devices the node has",
            id="nobody knows how many there should be",
        ),
        pytest.param(
            [a_slice(2, node="m")],
            PLACE,
            "not yet",
            "the driver has published nothing",
            id="another node's devices",
        ),
    ],
)
def test_the_driver_has_published_everything(
    objects: list[Obj], place: Place, verdict: str, why: str
) -> None:
    assert told(slices_are_complete(place, scene(*objects).look, NOW)) == (verdict, why)


def test_a_pool_that_is_no_valid_pool_is_no_proof() -> None:
    twice = a_slice(2)
    twice["spec"]["devices"] = [{"name": "gpu-0"}, {"name": "gpu-0"}]
    found = slices_are_complete(PLACE, scene(twice).look, NOW)
    assert (found.verdict, str(found.code)) == ("refuted", "DRIFT_POOL_INVALID")


@pytest.mark.parametrize(
    "objects, mixed",
    [
        pytest.param([a_pod("p", limits=ONE)], False, id="only the plugin's book has an entry"),
        pytest.param([a_slice(), a_claim()], False, id="only the driver's book has one"),
        pytest.param([a_pod("p", limits=ONE), a_slice(), a_claim()], True, id="both have"),
        pytest.param(
            [a_pod("p", limits=ONE), a_slice(node="m"), a_claim(pool="m")],
            False,
            id="they are on two nodes",
        ),
    ],
)
def test_two_books_of_one_hardware(objects: list[Obj], mixed: bool) -> None:
    assert uses(PLACE, scene(*objects).look.snapshot).mixed is mixed


@given(
    st.integers(0, 3),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, 0, 29, 30, 300]),
    st.sampled_from([0, 31]),
)
def test_a_driver_that_may_stop_holds_nothing(
    devices: int, held: bool, ending: bool, heard: bool, empty: int | None, age: int
) -> None:
    objects = [a_slice(devices)]
    objects += [a_claim()] if held else []
    objects += [a_pod("p", claim="c", deleted=True)] if ending else []
    seen = scene(*objects, age=age, missing=() if heard else ("ResourceClaim",))
    since = None if empty is None else ago(seconds=empty)
    found = claims_are_free(PLACE, seen.look, NOW, empty_since=since, report=CLEAN)
    if found.proved:
        assert heard and not held and not ending and age == 0 and empty in (30, 300)
