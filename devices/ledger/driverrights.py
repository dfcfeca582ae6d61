"""What drivers may do in the cluster, against what they need to publish and to tell status. Pure.

From 1.36 on the API server asks two things more of whoever writes `resourceclaims/status`
(DRAResourceClaimGranularStatusAuthorization): `resourceclaims/binding` for allocations, which is
the scheduler's alone, and `resourceclaims/driver` with a driver's name for that driver's devices:
`associated-node:<verb>` where the claim is tied to the account's own node, else
`arbitrary-node:<verb>`. Both are names in RBAC only. What is proposed is never wider than the need.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from devices.doctor.rights import Right, grains

Obj = Mapping[str, Any]
#: Namespace and name of a ServiceAccount.
Account = tuple[str, str]

DRA: Final = "resource.k8s.io"
STATUS, OF_DRIVER, BINDING = (
    "resourceclaims/status",
    "resourceclaims/driver",
    "resourceclaims/binding",
)
_WRITES: Final = frozenset({"create", "update", "patch", "delete", "deletecollection", "*"})


class Word(StrEnum):
    """What is wrong with a right."""

    LACKS = "lacks"
    BEYOND = "has beyond its need"
    UNKNOWN = "not known"


@dataclass(frozen=True, slots=True)
class Fleet:
    """What a cluster shows of one driver. ``everywhere``: some of its devices are tied to no node.
    ``tells``: claims carry device status of it. ``accounts`` are those of its DaemonSets, as far as
    node pools name them.
    """

    driver: str
    everywhere: bool = False
    tells: bool = False
    accounts: frozenset[Account] = frozenset()


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong; `account` as namespace/name, empty where none was found."""

    driver: str
    account: str
    word: Word
    right: str
    why: str
    remedy: str


def rights_by_account(objects: Iterable[Obj]) -> Mapping[Account, frozenset[Right]]:
    """What roles and bindings give to each ServiceAccount; what a RoleBinding gives holds in its
    namespace alone. Bindings to roles that are not there give nothing.
    """
    roles: dict[tuple[str, str, str], Any] = {}
    bindings = []
    for one in objects:
        meta = one["metadata"]
        match one["kind"]:
            case "ClusterRole" | "Role":
                key = (one["kind"], meta.get("namespace", ""), meta["name"])
                roles[key] = one.get("rules") or ()
            case "ClusterRoleBinding" | "RoleBinding":
                bindings.append(one)
    found: dict[Account, set[Right]] = defaultdict(set)
    for one in bindings:
        place = one["metadata"].get("namespace", "")
        role = one["roleRef"]
        key = (role["kind"], place if role["kind"] == "Role" else "", role["name"])
        given = {right for rule in roles.get(key, ()) for right in grains(rule, place)}
        for subject in one.get("subjects") or ():
            if subject["kind"] == "ServiceAccount":
                found[subject.get("namespace") or place, subject["name"]] |= given
    return {account: frozenset(rights) for account, rights in found.items()}


def check(
    fleets: Iterable[Fleet], rights: Mapping[Account, frozenset[Right]]
) -> tuple[Finding, ...]:
    """Every driver that has too few or too many rights, and others that may write allocations."""
    found: list[Finding] = []
    known: set[Account] = set()
    for fleet in sorted(fleets, key=lambda fleet: fleet.driver):
        accounts = fleet.accounts | accounts_of(fleet.driver, rights)
        known |= accounts
        if not accounts:
            found.append(
                Finding(
                    fleet.driver, "", Word.UNKNOWN, "",
                    "No account is known as this driver's: no right names it.",
                    "Name its DaemonSet in its node pool, then ask again.",
                )
            )  # fmt: skip
        for account in sorted(accounts):
            has = rights.get(account, frozenset())
            found += _lacks(fleet, account, has)
            found += _beyond(fleet, account, has)
    for account, has in sorted(rights.items()):
        if account in known or account[0] == "kube-system":
            continue
        if any(_covers(right, DRA, BINDING) for right in has):
            found.append(
                Finding(
                    "", _name(account), Word.BEYOND, f"{BINDING}.{DRA}",
                    "It may write allocations, which is the scheduler's; two schedulers that share "
                    "devices hand them out twice.",
                    "Take the right away unless this is the cluster's only scheduler of devices.",
                )
            )  # fmt: skip
    return tuple(found)


def accounts_of(driver: str, rights: Mapping[Account, frozenset[Right]]) -> frozenset[Account]:
    """Accounts whose rights name the driver: its device status, or Berth's own grain for slices."""
    return frozenset(
        account
        for account, has in rights.items()
        if any(
            right.name == driver
            and (right.group, right.resource) in {(DRA, OF_DRIVER), ("berth.dev", "drivers")}
            for right in has
        )
    )


def _lacks(fleet: Fleet, account: Account, has: frozenset[Right]) -> Iterable[Finding]:
    def lack(right: str, why: str, remedy: str) -> Finding:
        return Finding(fleet.driver, _name(account), Word.LACKS, right, why, remedy)

    for verb in ("create", "delete"):
        if not _may(has, verb, "resourceslices"):
            yield lack(
                f"{verb} resourceslices.{DRA}", "It cannot publish its devices.",
                f"Allow {verb} on resourceslices by a ClusterRole.",
            )  # fmt: skip
    if not (_may(has, "update", "resourceslices") or _may(has, "patch", "resourceslices")):
        yield lack(
            f"update resourceslices.{DRA}", "It cannot change what it publishes.",
            "Allow update on resourceslices by a ClusterRole.",
        )  # fmt: skip
    if not _may(has, "get", "resourceclaims"):
        yield lack(
            f"get resourceclaims.{DRA}", "It cannot prepare devices: it reads the claim first.",
            "Allow get on resourceclaims.",
        )  # fmt: skip
    writes = [verb for verb in ("update", "patch") if _may(has, verb, STATUS)]
    if fleet.tells and not writes:
        yield lack(
            f"patch {STATUS}.{DRA}", "Claims carry its device status, and it may not write it.",
            f"Allow patch on {STATUS}.",
        )  # fmt: skip
    reach = "arbitrary-node" if fleet.everywhere else "associated-node"
    for verb in writes:
        enough = any(
            _may(has, f"{one}:{verb}", OF_DRIVER, fleet.driver) for one in ("arbitrary-node", reach)
        )
        if not enough:
            yield lack(
                f"{reach}:{verb} {OF_DRIVER}.{DRA} {fleet.driver}",
                "From 1.36 on its writes of device status are refused; it tries again for ever.",
                f"Allow {reach}:{verb} on {OF_DRIVER} with resourceNames [{fleet.driver}].",
            )  # fmt: skip


def _beyond(fleet: Fleet, account: Account, has: frozenset[Right]) -> Iterable[Finding]:
    for right in sorted(has):
        told = _too_much(fleet, right)
        if told is not None:
            why, remedy = told
            yield Finding(fleet.driver, _name(account), Word.BEYOND, str(right), why, remedy)


def _too_much(fleet: Fleet, right: Right) -> tuple[str, str] | None:
    """Why a grain is more than the driver needs, and what to do; None where it is not."""
    if _covers(right, DRA, BINDING):
        return (
            "It may allocate and reserve claims, which is the scheduler's.",
            f"Take {BINDING} away; where it comes of *, name resources one by one.",
        )
    if right.group == DRA and right.resource == OF_DRIVER:
        if right.name != fleet.driver:
            whose = f"driver {right.name}" if right.name else "every driver"
            return (
                f"It may write the device status of {whose}.",
                f"Set resourceNames [{fleet.driver}].",
            )
        if right.verb.startswith("arbitrary-node") and not fleet.everywhere:
            verb = right.verb.partition(":")[2]
            return (
                "It may write status for claims on any node, and its devices are on its own.",
                f"Use associated-node:{verb}.",
            )
        if right.verb == "*":
            return "It may use every verb.", "Name the verbs, such as associated-node:patch."
    if right.group == DRA and right.resource == "resourceclaims" and right.verb in _WRITES:
        return (
            "It may change or remove claims of tenants; drivers only read them.",
            f"Take {right.verb} on resourceclaims away.",
        )
    if right.group == "" and right.resource == "pods/status" and right.verb in _WRITES:
        return (
            "It may write what Pods are charged, which is the scheduler's and the kubelet's.",
            f"Take {right.verb} on pods/status away.",
        )
    return None


def _covers(right: Right, group: str, resource: str) -> bool:
    """Whether a grain everywhere gives some write on it; `*` gives all of them."""
    return (
        right.group in (group, "*")
        and right.resource in (resource, "*", f"*/{resource.partition('/')[2]}")
        and right.verb in _WRITES
        and not right.namespace
        and not right.path
    )


def _may(has: frozenset[Right], verb: str, resource: str, name: str = "") -> bool:
    """Whether grains give a verb in the whole cluster: slices and drivers are everywhere."""
    return any(
        right.verb in (verb, "*")
        and right.group in (DRA, "*")
        and right.resource in (resource, "*", f"*/{resource.partition('/')[2] or '-'}")
        and right.name in ("", name)
        and not right.namespace
        and not right.path
        for right in has
    )


def _name(account: Account) -> str:
    return "/".join(account)
