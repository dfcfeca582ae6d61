"""What a turn does: wanted and found objects → acts."""

from __future__ import annotations

from typing import Any

import pytest

from devices.dra.changes import Make, Remove, changes, generated

CLAIM = {"kind": "ResourceClaim", "metadata": {"namespace": "team", "name": "train"}}
REMOVE = Remove("ResourceClaim", "team", "train", "uid-train")


def found(*, deleting: bool = False) -> dict[str, Any]:
    metadata = {"namespace": "team", "name": "train", "uid": "uid-train"}
    if deleting:
        metadata["deletionTimestamp"] = "2026-11-02T12:00:00Z"
    return {"kind": "ResourceClaim", "metadata": metadata}


@pytest.mark.parametrize(
    ("wanted", "there", "made_before", "acts"),
    [
        pytest.param([CLAIM], None, False, [Make(CLAIM)], id="what was never made is made"),
        pytest.param([CLAIM], found(), False, [], id="what a dead turn made is not made again"),
        pytest.param([CLAIM], found(), True, [], id="what agrees is left alone"),
        pytest.param([CLAIM], None, True, [], id="what others deleted is not made again"),
        pytest.param([], found(), True, [REMOVE], id="what is not wanted goes"),
        pytest.param([], found(), False, [REMOVE], id="a late turn's left-over goes too"),
        pytest.param([], found(deleting=True), True, [], id="what is going is not deleted twice"),
        pytest.param([], None, True, [], id="what is gone needs nothing"),
    ],
)
def test_acts(wanted: list[Any], there: Any, made_before: bool, acts: list[Make | Remove]) -> None:
    assert changes(wanted, there, made_before=made_before) == acts


@pytest.mark.parametrize(
    ("owners", "made"),
    [
        pytest.param([{"kind": "Pod", "controller": True}], True, id="a Pod's own claim"),
        pytest.param([{"kind": "Pod", "controller": False}], False, id="owned, not controlled"),
        pytest.param([], False, id="somebody made it by hand"),
    ],
)
def test_generated_claims_belong_to_their_pod(owners: list[Any], made: bool) -> None:
    claim = found()
    claim["metadata"]["ownerReferences"] = owners
    assert generated(claim) is made
