"""Drivers with too few or too many rights are named; nothing wider than the need is proposed."""

from __future__ import annotations

from typing import Any

import pytest

from devices.ledger.driverrights import Finding, Fleet, Word, check, rights_by_account

Obj = dict[str, Any]
DRIVER = "gpu.example.com"
ME = ("drivers", "gpu-node")


def rule(resources: list[str], verbs: list[str], names: list[str] | None = None) -> Obj:
    found: Obj = {"apiGroups": ["resource.k8s.io"], "resources": resources, "verbs": verbs}
    return found | ({"resourceNames": names} if names else {})


SLICES = rule(["resourceslices"], ["get", "list", "watch", "create", "update", "delete"])
CLAIMS = rule(["resourceclaims"], ["get"])
STATUS = rule(["resourceclaims/status"], ["patch"])
OWN = rule(["resourceclaims/driver"], ["associated-node:patch"], [DRIVER])
ANYWHERE = rule(["resourceclaims/driver"], ["arbitrary-node:patch"], [DRIVER])


def found(
    rules: list[Obj], *, everywhere: bool = False, tells: bool = True, kind: str = "ClusterRole"
) -> tuple[Finding, ...]:
    space = {"namespace": "drivers"} if kind == "Role" else {}
    objects = [
        {"kind": kind, "metadata": {"name": "gpu", **space}, "rules": rules},
        {
            "kind": f"{kind}Binding",
            "metadata": {"name": "gpu", **space},
            "roleRef": {"kind": kind, "name": "gpu"},
            "subjects": [{"kind": "ServiceAccount", "namespace": ME[0], "name": ME[1]}],
        },
    ]
    fleet = Fleet(DRIVER, everywhere, tells, frozenset({ME}))
    return check([fleet], rights_by_account(objects))


@pytest.mark.parametrize(
    "rules, everywhere, tells",
    [
        pytest.param([SLICES, CLAIMS], False, False, id="one that tells no status"),
        pytest.param([SLICES, CLAIMS, STATUS, OWN], False, True, id="of its node"),
        pytest.param([SLICES, CLAIMS, STATUS, ANYWHERE], True, True, id="of several nodes"),
    ],
)
def test_a_driver_with_what_it_needs_is_not_named(rules, everywhere, tells) -> None:
    assert found(rules, everywhere=everywhere, tells=tells) == ()


@pytest.mark.parametrize(
    "rules, right",
    [
        pytest.param(
            [SLICES, CLAIMS, STATUS],
            f"associated-node:patch resourceclaims/driver.resource.k8s.io {DRIVER}",
            id="refused from 1.36 on",
        ),
        pytest.param(
            [SLICES, CLAIMS, OWN], "patch resourceclaims/status.resource.k8s.io", id="no status"
        ),
        pytest.param(
            [SLICES, STATUS, OWN], "get resourceclaims.resource.k8s.io", id="reads no claim"
        ),
        pytest.param(
            [rule(["resourceslices"], ["create", "update"]), CLAIMS, STATUS, OWN],
            "delete resourceslices.resource.k8s.io",
            id="cannot withdraw",
        ),
    ],
)
def test_too_few_rights_are_named(rules, right) -> None:
    [one] = found(rules)
    assert (one.word, one.right, one.account) == (Word.LACKS, right, "drivers/gpu-node")
    assert "arbitrary" not in one.remedy and "*" not in one.remedy


def test_a_network_driver_needs_any_node() -> None:
    [one] = found([SLICES, CLAIMS, STATUS, OWN], everywhere=True)
    assert one.word is Word.LACKS and one.right.startswith("arbitrary-node:patch")


@pytest.mark.parametrize(
    "more, says",
    [
        pytest.param(ANYWHERE, "on any node", id="any node"),
        pytest.param(
            rule(["resourceclaims/driver"], ["associated-node:patch"]), "every driver", id="all"
        ),
        pytest.param(
            rule(["resourceclaims/driver"], ["associated-node:patch"], ["other"]),
            "driver other",
            id="another one's",
        ),
        pytest.param(rule(["resourceclaims/binding"], ["patch"]), "scheduler's", id="binding"),
        pytest.param(rule(["*"], ["*"]), "scheduler's", id="a star"),
        pytest.param(rule(["resourceclaims"], ["update"]), "only read them", id="claims"),
        pytest.param(
            {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]},
            "what Pods are charged",
            id="pods' status",
        ),
    ],
)
def test_too_many_rights_are_named(more, says) -> None:
    [one] = found([SLICES, CLAIMS, STATUS, OWN, more])
    assert one.word is Word.BEYOND and says in one.why


def test_rights_in_one_namespace_do_not_let_it_publish() -> None:
    said = found([SLICES, CLAIMS, STATUS, OWN], kind="Role")
    assert {one.word for one in said} == {Word.LACKS}
    assert "create resourceslices.resource.k8s.io" in {one.right for one in said}


def test_a_driver_that_no_right_names_is_not_known() -> None:
    [one] = check([Fleet(DRIVER)], {})
    assert (one.word, one.account) == (Word.UNKNOWN, "")


def test_a_second_scheduler_is_named() -> None:
    objects = [
        {
            "kind": "ClusterRole",
            "metadata": {"name": "s"},
            "rules": [rule(["resourceclaims/binding"], ["update"])],
        },
        {
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "s"},
            "roleRef": {"kind": "ClusterRole", "name": "s"},
            "subjects": [{"kind": "ServiceAccount", "namespace": "batch", "name": "binder"}],
        },
    ]
    [one] = check([], rights_by_account(objects))
    assert (one.account, one.word) == ("batch/binder", Word.BEYOND)
