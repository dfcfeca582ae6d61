"""The doctor's judgement over frozen looks: what is wrong, how grave it is, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from devices.doctor import deployed
from devices.doctor.checks import examine
from devices.doctor.findings import CODES, Area, Report, Severity, report_of
from devices.doctor.policies import difference
from devices.doctor.releases import changes_after, unfit, version_of
from devices.doctor.rights import Right, function_of, grains, needed, too_many
from devices.doctor.seen import (
    Account,
    Broker,
    Certificate,
    Cluster,
    Database,
    Disk,
    Gate,
    Parameter,
    Policy,
    Queue,
    Seen,
    Unseen,
    Watch,
)
from tests.factories import NOON

POLICY = {
    "kind": "ValidatingAdmissionPolicyBinding",
    "metadata": {"name": "berth-x"},
    "spec": {"policyName": "berth-x", "validationActions": ["Deny"]},
}
CREATE = Right("create", "resource.k8s.io", "resourceclaims")
WORKER = Account("berth-worker", frozenset({CREATE}), frozenset(), frozenset({CREATE}))
KINDS = {
    kind: "v1"
    for kind in ("DeviceClass", "ResourceSlice", "ResourceClaim", "ResourceClaimTemplate")
}


def a_look(**other: Any) -> Seen:
    """A Berth that is well, except for what is given."""
    return Seen(
        **{
            "now": NOON,
            "database": Database(180003, 2**30, NOON, ()),
            "broker": Broker("9.1", "noeviction", 3),
            "cluster": Cluster("v1.37.2", KINDS),
            "gates": (Gate("DynamicResourceAllocation", "on"),),
            "accounts": {"berth-worker": WORKER},
            "policies": (Policy("ValidatingAdmissionPolicyBinding", "berth-x", POLICY, POLICY),),
            "parameter": Parameter("812", "812"),
            "watch": Watch(NOON + timedelta(seconds=5), {"Pod": 3.0}, {}, 45.0),
            "queue": Queue(2, 4.0, "t"),
            "server_clock": NOON,
            "certificates": {"API server": Certificate("API server", NOON + timedelta(days=300))},
            "audit": True,
            "disks": (Disk("/", 50, 100),),
            "sights": {},
            **other,
        }
    )


def found(**other: Any) -> list[tuple[str, str]]:
    return [
        (one.code, one.severity.value)
        for section in examine(a_look(**other)).sections
        if section.area is not Area.UPGRADE
        for one in section.findings
    ]


def test_a_berth_that_is_well_has_nothing_to_be_told():
    assert found() == []
    report = examine(a_look())
    assert report.exit_code == 0
    assert [section.area for section in report.sections] == list(Area)
    assert all(section.seen for section in report.sections)


@pytest.mark.parametrize(
    "other, findings",
    [
        pytest.param(
            {"database": Database(150004, 1, NOON, ())},
            [("DATABASE_OLD", "warning")],
            id="an old PostgreSQL",
        ),
        pytest.param(
            {"database": Database(180003, 1, NOON, ("devices.0020_doctor",))},
            [("MIGRATIONS_PENDING", "error")],
            id="a migration that was forgotten",
        ),
        pytest.param(
            {"database": Database(180003, 1, NOON - timedelta(seconds=9), ())},
            [("CLOCK_OFF", "error")],
            id="the database's clock is off",
        ),
        pytest.param({"broker": Unseen("refused")}, [("BROKER_AWAY", "error")], id="no broker"),
        pytest.param(
            {"broker": Broker("9.1", "allkeys-lru", 0)},
            [("BROKER_EVICTS", "warning")],
            id="a broker that forgets",
        ),
        pytest.param(
            {"broker": Broker("9.1", "", 5000)}, [("QUEUE_LONG", "warning")], id="a long queue"
        ),
        pytest.param({"cluster": Unseen("cut")}, [("CLUSTER_AWAY", "error")], id="no cluster"),
        pytest.param(
            {"cluster": Cluster("v1.34.1", KINDS)},
            [
                ("RELEASE_UNFIT", "error"),
                ("RELEASE_UNFIT", "error"),
                ("RELEASE_UNSUPPORTED", "error"),
            ],
            id="a release that harms",
        ),
        pytest.param(
            {"cluster": Cluster("v1.41.0", KINDS)},
            [("RELEASE_UNTRIED", "warning")],
            id="a release of the future",
        ),
        pytest.param(
            {"cluster": Cluster("v1.37.2", {**KINDS, "DeviceTaintRule": ""})},
            [("KIND_NOT_SERVED", "info")],
            id="a kind that one can do without",
        ),
        pytest.param(
            {"cluster": Cluster("v1.37.2", {**KINDS, "ResourceClaim": ""})},
            [("KIND_NOT_SERVED", "error")],
            id="a kind that one cannot do without",
        ),
        pytest.param(
            {"gates": Unseen("not yet")}, [("GATES_UNKNOWN", "warning")], id="gates never read"
        ),
        pytest.param(
            {"gates": (Gate("DynamicResourceAllocation", "off"), Gate("DRADeviceTaints", "off"))},
            [("GATE_OFF", "error")],
            id="DRA itself is off",
        ),
        pytest.param(
            {"accounts": {"berth-watch": Unseen("may not act as it", refused=True)}},
            [("RIGHTS_NOT_LOOKED_AT", "info")],
            id="an account that one may not act as",
        ),
        pytest.param(
            {"accounts": {"berth-worker": replace(WORKER, denied=frozenset({CREATE}))}},
            [("RIGHT_MISSING", "error")],
            id="a right that is missing",
        ),
        pytest.param(
            {
                "accounts": {
                    "berth-worker": replace(
                        WORKER, has=frozenset({CREATE, Right("get", "", "secrets")})
                    )
                }
            },
            [("RIGHT_TOO_MANY", "warning")],
            id="a right that nobody needs",
        ),
        pytest.param(
            {"accounts": {"berth-worker": replace(WORKER, has=frozenset({Right("*", "*", "*")}))}},
            [("RIGHT_TOO_MANY", "error")],
            id="every right",
        ),
        pytest.param(
            {"policies": (Policy("P", "berth-x", POLICY, None),)},
            [("POLICY_MISSING", "error")],
            id="a policy that is not there",
        ),
        pytest.param(
            {
                "policies": (
                    Policy(
                        "P", "berth-x", POLICY,
                        {**POLICY, "spec": {**POLICY["spec"], "validationActions": ["Warn"]}},
                    ),
                )
            },
            [("POLICY_NOT_ENFORCED", "error")],
            id="a policy that only warns",
        ),
        pytest.param(
            {
                "policies": (
                    Policy(
                        "P", "berth-x", POLICY,
                        {**POLICY, "spec": {**POLICY["spec"], "policyName": "other"}},
                    ),
                )
            },
            [("POLICY_DIFFERS", "error")],
            id="another Berth's policy",
        ),
        pytest.param(
            {"policies": Unseen("forbidden", refused=True)},
            [("POLICIES_NOT_LOOKED_AT", "warning")],
            id="policies that one may not read",
        ),
        pytest.param(
            {"parameter": Parameter("812", "640")},
            [("PARAMETER_STALE", "error")],
            id="an API server that judges by an old parameter",
        ),
        pytest.param(
            {"parameter": Parameter("812", "")},
            [("PARAMETER_STALE", "error")],
            id="an API server that finds no parameter",
        ),
        pytest.param(
            {"parameter": Unseen("not installed")},
            [("PARAMETER_NOT_LOOKED_AT", "warning")],
            id="a parameter that nobody could ask for",
        ),
        pytest.param(
            {"watch": Watch(None, {"Pod": None, "Node": 99.0}, {"Node": "forbidden"}, 45.0)},
            [("NOBODY_WATCHES", "error"), ("KIND_TROUBLED", "error"), ("MIRROR_STALE", "error")],
            id="nobody watches, one kind is in trouble, one was never listed",
        ),
        pytest.param(
            {"queue": Queue(1, 1000.0, "t")}, [("PROMISES_LATE", "warning")], id="a late promise"
        ),
        pytest.param(
            {"server_clock": NOON + timedelta(seconds=7)},
            [("CLOCK_OFF", "error")],
            id="the API server's clock is off",
        ),
        pytest.param(
            {"server_clock": NOON - timedelta(seconds=6)},
            [],
            id="the API server stamps whole seconds",
        ),
        pytest.param(
            {"certificates": {"a": Certificate("a", NOON + timedelta(days=20))}},
            [("CERTIFICATE_EXPIRES", "warning")],
            id="a certificate that soon is over",
        ),
        pytest.param(
            {"certificates": {"a": Certificate("a", NOON - timedelta(days=1)), "b": Unseen("x")}},
            [("CERTIFICATE_EXPIRES", "error"), ("CERTIFICATE_UNKNOWN", "info")],
            id="one that is over, and one that nobody saw",
        ),
        pytest.param({"audit": False}, [("AUDIT_OFF", "warning")], id="no audit log"),
        pytest.param(
            {"audit": Unseen("x")}, [("AUDIT_UNKNOWN", "warning")], id="perhaps no audit log"
        ),
        pytest.param(
            {"disks": (Disk("/", 9, 100),)}, [("DISK_FULL", "warning")], id="a disk that is full"
        ),
    ],
)  # fmt: skip
def test_what_is_found(other: dict[str, Any], findings: list[tuple[str, str]]):
    assert found(**other) == findings


def test_each_finding_has_a_code_that_is_listed_and_says_what_to_do():
    worst = examine(
        a_look(
            broker=Unseen("x"),
            cluster=Cluster("v1.34.0", {}),
            audit=False,
            watch=Watch(None, {}, {}, 45.0),
        )
    )
    assert worst.exit_code == 2
    for one in worst.findings:
        assert one.code in CODES
        assert one.sentence
        assert one.remedy.endswith((".", "?"))
        assert one.subject
    ranks = [one.severity.rank for one in worst.findings]
    assert ranks == sorted(ranks)


def test_the_docs_list_every_code():
    text = (Path(__file__).parents[3] / "docs" / "doctor.md").read_text()
    listed = {
        cells[0].strip().strip("`"): cells[1].strip()
        for line in text.splitlines()
        if line.startswith("| `")
        for cells in [line.strip("|").split("|")]
    }
    assert listed == CODES


def test_a_report_is_read_back_as_it_was_stored():
    report = examine(a_look(audit=False, broker=Unseen("x")))
    assert report_of(report.as_json()) == report


@pytest.mark.parametrize(
    "severities, code", [((), 0), (("info",), 0), (("warning", "info"), 1), (("error",), 2)]
)
def test_the_exit_code_is_that_of_the_gravest(severities: tuple[str, ...], code: int):
    one = examine(a_look(audit=False)).findings[0]
    section = replace(
        examine(a_look()).sections[0],
        findings=tuple(replace(one, severity=Severity(word)) for word in severities),
    )
    assert Report((section,)).exit_code == code


# --- rights ---


def test_every_right_of_every_account_has_a_function():
    """Whoever adds a right to deploy/rbac says in devices/doctor/rights.py what needs it."""
    nameless = [
        f"{account}: {right}"
        for account, rights in deployed.accounts().items()
        for right in rights
        if not function_of(account, right)
    ]
    assert not nameless


def test_the_accounts_are_those_of_the_processes():
    accounts = deployed.accounts()
    assert {"berth-web", "berth-beat", "berth-watch", "berth-worker", "berth-probe"} <= set(
        accounts
    )
    assert accounts["berth-web"] == accounts["berth-beat"] == frozenset()
    assert not [right for rights in accounts.values() for right in rights if right.wide]


def test_a_rule_is_as_many_grains_as_it_has_combinations():
    rule = {
        "apiGroups": ["", "apps"],
        "resources": ["a", "b"],
        "verbs": ["get", "list"],
        "resourceNames": ["x", "y"],
    }
    assert len(set(grains(rule, "n"))) == 16
    paths = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
    assert list(grains(paths)) == [Right("get", path="/metrics")]


def test_a_role_in_a_namespace_gives_rights_there_only():
    role = {
        "kind": "Role",
        "metadata": {"name": "r", "namespace": "n"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    }
    binding = {
        "kind": "RoleBinding",
        "metadata": {"name": "b", "namespace": "n"},
        "roleRef": {"kind": "Role", "name": "r"},
        "subjects": [{"kind": "ServiceAccount", "name": "who"}],
    }
    assert needed([role, binding]) == {"who": frozenset({Right("get", "", "pods", "", "n")})}


@pytest.mark.parametrize(
    "has, extra",
    [
        pytest.param(Right("get", "", "pods", "", "n"), False, id="what it needs everywhere"),
        pytest.param(Right("get", "", "pods", "p", "n"), False, id="one of what it needs"),
        pytest.param(Right("get", "", "secrets", "s", "n"), False, id="the one that it needs"),
        pytest.param(Right("get", "", "secrets", "t", "n"), True, id="another than it needs"),
        pytest.param(Right("get", "", "secrets", "", "n"), True, id="all, needing one"),
        pytest.param(Right("get", "", "secrets", "s", "m"), True, id="it, elsewhere"),
        pytest.param(Right("*", "", "pods", "", "n"), True, id="every verb"),
        pytest.param(Right("get", "*", "pods", "", "n"), True, id="every group"),
        pytest.param(Right("get", path="/version"), False, id="a path that anybody may read"),
        pytest.param(Right("get", path="/metrics"), False, id="a path that it needs"),
        pytest.param(Right("get", path="/logs"), True, id="a path that it does not need"),
        pytest.param(Right("post", path="/version"), True, id="a path, otherwise than by reading"),
        pytest.param(
            Right("create", "authorization.k8s.io", "selfsubjectaccessreviews", "", "n"),
            False,
            id="what anybody may ask",
        ),
    ],
)
def test_which_rights_are_too_many(has: Right, extra: bool):
    needs = {
        Right("get", "", "pods"),
        Right("get", "", "secrets", "s", "n"),
        Right("get", path="/metrics"),
    }
    assert too_many({has}, needs) == ((has,) if extra else ())


# --- policies and releases ---


@pytest.mark.parametrize(
    "wanted, there, where",
    [
        pytest.param({"a": 1}, {"a": 1, "b": 2}, "", id="defaults are no difference"),
        pytest.param({"a": {"b": 1}}, {"a": {"b": 2}}, "a.b differs", id="another value"),
        pytest.param({"a": [1]}, {"a": [1, 2]}, "a has 2 entries instead of 1", id="more entries"),
        pytest.param({"a": [{"b": 1}]}, {"a": [{}]}, "a[0].b differs", id="a field that is gone"),
        pytest.param({"a": {}}, {}, "", id="nothing wanted, nothing there"),
    ],
)
def test_where_a_policy_differs(wanted: Any, there: Any, where: str):
    assert difference(wanted, there) == where


@pytest.mark.parametrize(
    "release, version",
    [
        ("v1.37.2", (1, 37, 2)),
        ("1.36.3", (1, 36, 3)),
        ("v1.36.3-eks-1+a", (1, 36, 3)),
        ("", None),
        ("devel", None),
    ],
)
def test_reading_a_release(release: str, version: tuple[int, int, int] | None):
    assert version_of(release) == version


def test_a_release_is_fit_again_where_it_was_mended():
    assert len(unfit((1, 34, 1))) == 2
    assert len(unfit((1, 34, 3))) == 1
    assert unfit((1, 34, 4)) == unfit((1, 35, 1)) == unfit((1, 37, 0)) == ()


def test_before_an_upgrade_it_counts_what_stands_here():
    assert {change.minor for change in changes_after((1, 35, 4))} == {36}
    sights = {"classes with an extended resource": 2, "slices": 0}
    look = a_look(cluster=Cluster("v1.35.4", KINDS), sights=sights)
    upgrade = next(s for s in examine(look).sections if s.area is Area.UPGRADE)
    told = {one.subject: one for one in upgrade.findings}
    assert set(told) == {"v1.36 status", "v1.36 extended"}, "without slices nothing wakes up"
    assert told["v1.36 extended"].severity is Severity.WARNING
    assert "Here: 2 classes with an extended resource." in told["v1.36 extended"].sentence
    assert told["v1.36 status"].severity is Severity.INFO
