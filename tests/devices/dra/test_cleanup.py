"""What may be deleted on the leak board, and what is spared; nothing that a living Pod holds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.dra.claims import read_claim
from devices.dra.cleanup import CLEANABLE, Deletion, Spared, cleanup
from devices.dra.codes import CODES
from devices.dra.pods import read_pod

Obj = dict[str, Any]


def a_claim(*reserved: Obj, **metadata: Any) -> Obj:
    results = [{"request": "r", "driver": "d", "pool": "p", "device": "x"}]
    return {
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "ns", "uid": "u-c", **metadata},
        "spec": {},
        "status": {
            "allocation": {"devices": {"results": results}},
            "reservedFor": list(reserved),
        },
    }


def a_pod(name: str, phase: str = "Running", claim: str = "", **metadata: Any) -> Obj:
    uses = [{"name": "gpu", "resourceClaimName": claim}] if claim else []
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns", "uid": f"u-{name}", **metadata},
        "spec": {"resourceClaims": uses, "containers": [{"name": "main"}]},
        "status": {"phase": phase},
    }


FOR = {"resource": "pods", "name": "p", "uid": "u-p"}
GROUP = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "u-g"}
OWNED = {"ownerReferences": [{"kind": "Pod", "name": "p", "uid": "u-p", "controller": True}]}


def judged(claim: Obj | None, *pods: Obj, code: str = "LEAK_UNRESERVED", uid: str = "u-c") -> str:
    found = cleanup(
        code,
        uid,
        read_claim(claim)[0] if claim else None,
        "7",
        [read_pod(pod) for pod in pods],
    )
    return found.code if isinstance(found, Spared) else "DELETE"


@pytest.mark.parametrize(
    ("claim", "pods", "expected"),
    [
        pytest.param(a_claim(), [], "DELETE", id="nobody is there"),
        pytest.param(a_claim(FOR), [], "DELETE", id="reserved for a Pod that is gone"),
        pytest.param(a_claim(FOR), [a_pod("p")], "CLEANUP_IN_USE", id="the Pod is there again"),
        pytest.param(a_claim(FOR), [a_pod("p", "Succeeded")], "DELETE", id="its Pod has ended"),
        pytest.param(
            a_claim(FOR), [a_pod("p", uid="other")], "DELETE", id="another Pod has the name only"
        ),
        pytest.param(
            a_claim(), [a_pod("q", "Pending", claim="c")], "CLEANUP_IN_USE", id="a Pod waits for it"
        ),
        pytest.param(a_claim(), [a_pod("q", claim="d")], "DELETE", id="a Pod uses another claim"),
        pytest.param(a_claim(**OWNED), [a_pod("p")], "CLEANUP_IN_USE", id="its owner lives"),
        pytest.param(a_claim(GROUP), [], "CLEANUP_NOT_A_POD", id="held by what nobody can look up"),
        pytest.param(None, [], "CLEANUP_GONE", id="the claim is gone"),
        pytest.param(a_claim(uid="new"), [], "CLEANUP_GONE", id="a new claim has its name"),
        pytest.param(
            a_claim(deletionTimestamp="2026-11-30T08:00:00Z"),
            [],
            "CLEANUP_UNDER_WAY",
            id="it is being deleted",
        ),
    ],
)
def test_what_is_deleted_and_what_is_spared(
    claim: Obj | None, pods: list[Obj], expected: str
) -> None:
    assert judged(claim, *pods) == expected


@pytest.mark.parametrize(
    "code", ["LEAK_DOUBLE_ALLOCATION", "LEAK_FINALIZER", "LEAK_DEVICE_VANISHED"]
)
def test_what_a_deletion_does_not_mend_needs_a_decision(code: str) -> None:
    assert judged(a_claim(), code=code) == "CLEANUP_NEEDS_DECISION"


def test_pods_that_could_not_be_read_spare_it() -> None:
    found = cleanup("LEAK_UNRESERVED", "u-c", read_claim(a_claim())[0], "7", None)
    assert isinstance(found, Spared) and found.code == "CLEANUP_NOT_SEEN"


def test_a_deletion_says_of_which_version_and_what_it_frees() -> None:
    found = cleanup("LEAK_UNRESERVED", "u-c", read_claim(a_claim())[0], "7", [])
    assert found == Deletion("ns", "c", "u-c", "7", (("d", "p", "x"),))


def test_everything_cleanable_is_a_code_that_needs_cleanup() -> None:
    assert all(CODES[name].class_.value == "needs cleanup" for name in CLEANABLE)


@given(
    reserved=st.lists(st.sampled_from("abcd"), unique=True, max_size=4),
    living=st.lists(st.sampled_from("abcd"), unique=True, max_size=4),
    naming=st.booleans(),
    code=st.sampled_from(sorted(CLEANABLE)),
)
def test_a_claim_that_a_living_pod_holds_is_never_deleted(
    reserved: list[str], living: list[str], naming: bool, code: str
) -> None:
    claim = a_claim(*({"resource": "pods", "name": one, "uid": f"u-{one}"} for one in reserved))
    pods = [a_pod(one, claim="c" if naming and one in reserved else "") for one in living]
    held = set(reserved) & set(living)
    assert (judged(claim, *pods, code=code) == "DELETE") == (not held)
