"""The doctor against real API servers: each right of Berth's taken away alone, rights added, and
policies tampered with.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from devices import cluster
from devices.cluster.gateway import Gateway, Ref
from devices.doctor import asking, deployed
from devices.doctor.accounts import missing_sentence, rights
from devices.doctor.findings import Finding, Severity
from devices.doctor.policies import policies
from devices.doctor.rights import Right, anybodys, grains, needed
from devices.doctor.seen import Account, Unseen
from tests.deploy.ground import DEPLOY, SYSTEM, Ground, until
from tests.devices.doctor.test_checks import a_look
from tests.playground.planes import NEWEST, OLDER

ONE_IN_MAKE_TEST = [
    pytest.param(NEWEST, marks=pytest.mark.cluster, id=NEWEST),
    pytest.param(OLDER, marks=[pytest.mark.cluster136, pytest.mark.long], id=OLDER),
]
pytestmark = pytest.mark.parametrize("plane", ONE_IN_MAKE_TEST, indirect=True, scope="session")
ROLES = [one for one in deployed.objects("rbac") if one["kind"] in ("Role", "ClusterRole")]
#: What Kubernetes gives everybody cannot be taken from one account.
TAKEABLE = [
    (account, right)
    for account, needs in sorted(deployed.accounts().items())
    for right in sorted(needs)
    if not anybodys(right)
]


def judged(account: Account | Unseen) -> tuple[Finding, ...]:
    return rights(a_look(accounts={"it": account})).findings


def as_account(ground: Ground, name: str) -> Gateway:
    return cluster.connect(
        ground.plane.admin_kubeconfig, acting_as=f"system:serviceaccount:{SYSTEM}:{name}"
    )


def role_of(account: str, right: Right) -> dict[str, Any]:
    """The role that gives an account this right."""
    for binding in deployed.objects("rbac"):
        if binding["kind"] not in ("RoleBinding", "ClusterRoleBinding"):
            continue
        if account not in {subject["name"] for subject in binding["subjects"]}:
            continue
        place = binding["metadata"].get("namespace", "")
        for role in ROLES:
            same = role["metadata"]["name"] == binding["roleRef"]["name"]
            if same and role["metadata"].get("namespace", "") == place:
                found = {one for rule in role["rules"] for one in grains(rule, place)}
                if right in found:
                    return role
    raise LookupError(f"{account}: {right}")


def as_rule(right: Right) -> dict[str, Any]:
    if right.path:
        return {"nonResourceURLs": [right.path], "verbs": [right.verb]}
    rule = {"apiGroups": [right.group], "resources": [right.resource], "verbs": [right.verb]}
    return {**rule, **({"resourceNames": [right.name]} if right.name else {})}


@pytest.fixture
def without(ground: Ground) -> Iterator[Any]:
    """`without(account, right)` takes one right away until the test ends."""
    changed: list[dict[str, Any]] = []

    def take(account: str, right: Right) -> None:
        role = role_of(account, right)
        changed.append(role)
        place = role["metadata"].get("namespace", "")
        kept = [
            as_rule(one) for rule in role["rules"] for one in grains(rule, place) if one != right
        ]
        ground.admin.apply({**role, "rules": kept}, manager="berth-playground", force=True)

    yield take
    for role in changed:
        ground.admin.apply(role, manager="berth-playground", force=True)


@pytest.mark.parametrize(
    "account, right", [pytest.param(a, r, id=f"{a}: {r}") for a, r in TAKEABLE]
)
def test_each_right_that_is_taken_away_is_named_with_what_fails(
    ground: Ground, without, account: str, right: Right
):
    gateway = as_account(ground, account)
    without(account, right)
    until(lambda: not asking._allowed(gateway, right))
    seen = asking.account(gateway, account, deployed.accounts()[account])
    found = [one for one in judged(seen) if one.code == "RIGHT_MISSING"]
    assert [one.sentence for one in found] == [missing_sentence(account, right)]
    assert found[0].severity is Severity.ERROR
    assert "Berth cannot" in found[0].sentence
    assert found[0].remedy.startswith("Apply deploy/rbac/")


def test_with_the_rights_of_deploy_nothing_is_missing_and_nothing_too_many(ground: Ground):
    for name, needs in deployed.accounts().items():
        gateway = as_account(ground, name)
        until(
            lambda gateway=gateway, needs=needs: all(asking._allowed(gateway, one) for one in needs)
        )
        seen = asking.account(gateway, name, needs)
        assert judged(seen) == (), name
        assert seen.whole


@pytest.fixture
def given(ground: Ground) -> Iterator[Any]:
    """`given(account, rules)` binds a further role to an account until the test ends."""
    kinds = ("ClusterRoleBinding", "ClusterRole")

    def bind(account: str, rules: list[dict[str, Any]]) -> None:
        api = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "doctor-extra"}}
        ground.admin.apply({**api, "kind": "ClusterRole", "rules": rules}, manager="test")
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole"}
        subject = {"kind": "ServiceAccount", "name": account, "namespace": SYSTEM}
        ground.admin.apply(
            {
                **api,
                "kind": "ClusterRoleBinding",
                "roleRef": {**role, "name": "doctor-extra"},
                "subjects": [subject],
            },
            manager="test",
        )

    yield bind
    for kind in kinds:
        ground.admin.delete(Ref(kind, "doctor-extra"))


@pytest.mark.parametrize(
    "rule, sentence, severity",
    [
        pytest.param(
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
            "berth-web may * *.*, and needs no such right.",
            Severity.ERROR,
            id="everything",
        ),
        pytest.param(
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]},
            "berth-web may get secrets, and needs no such right.",
            Severity.WARNING,
            id="one thing",
        ),
    ],
)
def test_a_right_too_many_is_named(ground: Ground, given, rule, sentence, severity):
    given("berth-web", [rule])
    gateway = as_account(ground, "berth-web")
    extra = next(grains(rule))

    def told() -> tuple[Finding, ...]:
        return judged(asking.account(gateway, "berth-web", frozenset()))

    until(lambda: any(one.sentence == sentence for one in told()))
    assert [(one.code, one.severity) for one in told()] == [("RIGHT_TOO_MANY", severity)], extra


def test_a_worker_looks_at_itself_and_at_the_account_that_it_may_act_as(ground: Ground):
    path = ground.plane.service_account_kubeconfig(SYSTEM, "berth-worker")
    seen = asking.accounts(
        cluster.connect(path),
        deployed.accounts(),
        lambda user: cluster.connect(path, acting_as=user),
    )
    looked = {name for name, one in seen.items() if isinstance(one, Account)}
    assert looked == {"berth-worker", "berth-probe"}
    refused = seen["berth-watch"]
    assert isinstance(refused, Unseen) and refused.refused
    assert "berth-worker may not act as it" in refused.why


def test_policies_are_seen_as_they_are(ground: Ground):
    wanted = deployed.objects("policies")

    def told() -> list[tuple[str, str]]:
        seen = asking.policies(ground.worker, wanted)
        return [(one.code, one.subject) for one in policies(a_look(policies=seen)).findings]

    assert told() == []
    name = "berth-slices"
    binding = next(
        one
        for one in wanted
        if one["kind"] == "ValidatingAdmissionPolicyBinding" and one["metadata"]["name"] == name
    )
    policy = next(
        one
        for one in wanted
        if one["kind"] == "ValidatingAdmissionPolicy" and one["metadata"]["name"] == name
    )
    try:
        ground.admin.merge(
            Ref(binding["kind"], name), {"spec": {"validationActions": ["Warn", "Audit"]}}
        )
        ground.admin.merge(Ref(policy["kind"], name), {"spec": {"failurePolicy": "Ignore"}})
        assert sorted(told()) == [
            ("POLICY_DIFFERS", f"ValidatingAdmissionPolicy {name}"),
            ("POLICY_NOT_ENFORCED", f"ValidatingAdmissionPolicyBinding {name}"),
        ]
        ground.admin.delete(Ref(binding["kind"], name))
        assert ("POLICY_MISSING", f"ValidatingAdmissionPolicyBinding {name}") in told()
    finally:
        for obj in (policy, binding):
            ground.admin.apply(obj, manager="berth-playground", force=True)


@pytest.mark.django_db
def test_the_command_of_an_administrator_looks_at_everything(ground: Ground, capsys):
    with pytest.raises(SystemExit):
        call_command("doctor", "--json", "--kubeconfig", str(ground.plane.admin_kubeconfig))
    sections = {one["area"]: one for one in json.loads(capsys.readouterr().out)}
    assert sections["Cluster"]["seen"].startswith(f"v{ground.plane.release}")
    count = len(deployed.accounts())
    assert sections["Rights"]["seen"] == f"{count} of {count} accounts were looked at."
    assert sections["Rights"]["findings"] == []
    assert sections["Policies"]["findings"] == []
    assert sections["Clock"]["findings"] == []
    assert "the API server" in sections["Clock"]["seen"]
    assert sections["Certificates"]["seen"].startswith("The first is over on ")
    codes = {one["code"] for section in sections.values() for one in section["findings"]}
    assert "NOBODY_WATCHES" in codes, "no watch process runs in this test"


def test_the_certificate_and_the_clock_are_the_api_servers(ground: Ground):
    now = timezone.now()
    shown = asking.certificate(ground.admin)
    assert not isinstance(shown, Unseen) and shown.ends > now + timedelta(days=1)
    stamped = asking.clock(ground.worker)
    assert not isinstance(stamped, Unseen) and abs(stamped - now) < timedelta(seconds=5)
    assert ground.admin.get(Ref("ConfigMap", "berth-doctor", SYSTEM)) is None
    assert (DEPLOY / "rbac").is_dir() and needed([]) == {}
