"""What a turn does: wanted and found objects → acts."""

from __future__ import annotations

from typing import Any

import pytest

from devices.dra.changes import Make, Remove, changes

CLAIM = {"kind": "ResourceClaim", "metadata": {"namespace": "team", "name": "train"}}
MINE = frozenset({"ResourceClaim", "ResourceClaimTemplate"})


def found(
    name: str = "train", *, deleting: bool = False, generated: bool = False
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"namespace": "team", "name": name, "uid": f"uid-{name}"}
    if deleting:
        metadata["deletionTimestamp"] = "2026-11-02T12:00:00Z"
    if generated:
        metadata["ownerReferences"] = [{"kind": "Pod", "name": "p", "controller": True}]
    return {"kind": "ResourceClaim", "metadata": metadata}


REMOVE = Remove("ResourceClaim", "team", "train", "uid-train")


@pytest.mark.parametrize(
    ("wanted", "there", "made_before", "acts"),
    [
        pytest.param([CLAIM], [], False, [Make(CLAIM)], id="what was never made is made"),
        pytest.param([CLAIM], [found()], False, [], id="what a dead turn made is not made again"),
        pytest.param([CLAIM], [found()], True, [], id="what agrees is left alone"),
        pytest.param([CLAIM], [], True, [], id="what others deleted is not made again"),
        pytest.param([], [found()], True, [REMOVE], id="what is not wanted goes"),
        pytest.param([], [found()], False, [REMOVE], id="a late turn's left-over goes too"),
        pytest.param([], [found(deleting=True)], True, [], id="what is going is not deleted twice"),
        pytest.param([], [], True, [], id="what is gone needs nothing"),
        pytest.param(
            [], [found(generated=True)], True, [], id="a generated claim belongs to its Pod"
        ),
        pytest.param(
            [CLAIM],
            [found("other")],
            False,
            [Make(CLAIM), Remove("ResourceClaim", "team", "other", "uid-other")],
            id="a second object of the same ask is one too many",
        ),
    ],
)
def test_acts(
    wanted: list[Any], there: list[Any], made_before: bool, acts: list[Make | Remove]
) -> None:
    assert changes(wanted, there, made_before=made_before, mine=MINE) == acts
