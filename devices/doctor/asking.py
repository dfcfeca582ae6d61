"""Asking the API server for what the doctor judges: rights, policies, its clock."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from devices.cluster.gateway import ClusterError, Forbidden, Gateway, Ref, Rejected
from devices.cluster.kinds import KINDS
from devices.doctor.rights import Right, grains
from devices.doctor.seen import Account, Certificate, Cluster, Parameter, Policy, Unseen
from devices.dra.names import POLICY_CONFIG_MAP, SYSTEM_NAMESPACE

#: An account as the API server names it.
ACCOUNT = f"system:serviceaccount:{SYSTEM_NAMESPACE}:"
#: A namespace in which Berth has no role of its own: what is allowed there is allowed everywhere.
ELSEWHERE = "default"
ASKED_PARAMETER = "berth-doctor-parameter"
PARAMETER_READ = re.compile(r"Berth PARAMETER_READ: (\S+)")
#: Seconds between questions: what was written a moment ago is read a moment later.
PATIENCE = (0.5, 1.0, 2.0)

ActAs = Callable[[str], Gateway]


def cluster(gateway: Gateway) -> Cluster | Unseen:
    """The release, and the served version of each kind in Berth's table."""
    try:
        served = gateway.served()
    except ClusterError as error:
        return Unseen(str(error), isinstance(error, Forbidden))
    kinds = {}
    for kind in KINDS.values():
        versions = served.versions(kind.group, kind.name)
        kinds[kind.name] = next((one for one in kind.versions if one in versions), "")
    # Reviews are asked of, never listed by discovery in every release.
    return Cluster(served.release, {n: v for n, v in kinds.items() if not n.endswith("Review")})


def whoami(gateway: Gateway) -> str:
    """The user name that the API server knows us by; raises ClusterError."""
    return str(_review(gateway, "SelfSubjectReview", {})["userInfo"]["username"])


def accounts(
    gateway: Gateway, needs: Mapping[str, frozenset[Right]], act_as: ActAs
) -> dict[str, Account | Unseen]:
    """Each account: ourselves directly, the others by impersonation where that is allowed."""
    try:
        we = whoami(gateway)
    except ClusterError as error:
        return {name: Unseen(str(error)) for name in needs}
    found: dict[str, Account | Unseen] = {}
    for name, rights in needs.items():
        user = f"{ACCOUNT}{name}"
        try:
            found[name] = account(gateway if user == we else act_as(user), name, rights)
        except Forbidden as error:
            found[name] = Unseen(f"{we} may not act as it: {error.message}", refused=True)
        except ClusterError as error:
            found[name] = Unseen(str(error))
    return found


def account(gateway: Gateway, name: str, needs: frozenset[Right]) -> Account:
    """One account, asked as itself. Raises ClusterError."""
    denied = frozenset(right for right in needs if not _allowed(gateway, right))
    has: set[Right] = set()
    whole = True
    for place in sorted(
        {ELSEWHERE, SYSTEM_NAMESPACE, *(right.namespace for right in needs)} - {""}
    ):
        said = _review(gateway, "SelfSubjectRulesReview", {"namespace": place})
        rules = (*(said.get("resourceRules") or ()), *(said.get("nonResourceRules") or ()))
        has.update(right for rule in rules for right in grains(rule, place))
        whole = whole and not said.get("incomplete")
    return Account(name, needs, denied, frozenset(has), whole)


def _allowed(gateway: Gateway, right: Right) -> bool:
    if right.path:
        asked: dict[str, Any] = {"nonResourceAttributes": {"path": right.path, "verb": right.verb}}
    else:
        resource, _, subresource = right.resource.partition("/")
        attributes = {
            "verb": right.verb,
            "group": right.group,
            "resource": resource,
            "subresource": subresource,
            "namespace": right.namespace,
            "name": right.name,
        }
        asked = {"resourceAttributes": {key: value for key, value in attributes.items() if value}}
    return bool(_review(gateway, "SelfSubjectAccessReview", asked).get("allowed"))


def _review(gateway: Gateway, kind: str, spec: Mapping[str, Any]) -> Mapping[str, Any]:
    obj: dict[str, Any] = {"kind": kind, "metadata": {}}
    if spec:
        obj["spec"] = dict(spec)
    answer: Mapping[str, Any] = gateway.create(obj).get("status") or {}
    return answer


def policies(gateway: Gateway, wanted: Iterable[Mapping[str, Any]]) -> tuple[Policy, ...] | Unseen:
    """Each policy and binding as it should be and as it is."""
    try:
        return tuple(_policies(gateway, wanted))
    except ClusterError as error:
        return Unseen(str(error), isinstance(error, Forbidden))


def _policies(gateway: Gateway, wanted: Iterable[Mapping[str, Any]]) -> Iterator[Policy]:
    for obj in wanted:
        kind, name = str(obj["kind"]), str(obj["metadata"]["name"])
        yield Policy(kind, name, obj, gateway.get(Ref(kind, name)))


def parameter(gateway: Gateway) -> Parameter | Unseen:
    """The policies' ConfigMap as written, and as this API server reads it.

    Where several API servers stand behind one address, one of them was asked.
    """
    for wait in (*PATIENCE, 0.0):
        try:
            seen = Parameter(_written(gateway), _read(gateway))
        except ClusterError as error:
            return Unseen(str(error), isinstance(error, Forbidden))
        if seen.read == seen.written:
            break
        time.sleep(wait)
    return seen


def _written(gateway: Gateway) -> str:
    found = gateway.get(Ref("ConfigMap", POLICY_CONFIG_MAP, SYSTEM_NAMESPACE))
    return str(found["metadata"]["resourceVersion"]) if found is not None else ""


def _read(gateway: Gateway) -> str:
    """What berth-parameter-read (deploy/policies/probe.yaml) says in its denial."""
    try:
        gateway.create(_config_map(ASKED_PARAMETER), dry_run=True)
    except Rejected as error:
        if found := PARAMETER_READ.search(error.message):
            return found[1]
        if "no params found" in error.message:
            return ""
        raise
    raise Rejected("The policy berth-parameter-read is not installed, or not in force yet.")


def _config_map(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": SYSTEM_NAMESPACE},
    }


def clock(gateway: Gateway) -> datetime | Unseen:
    """When the API server would have made an object that it was asked for by a dry run."""
    try:
        made = gateway.create(_config_map("berth-doctor"), dry_run=True)
        return datetime.fromisoformat(made["metadata"]["creationTimestamp"])
    except ClusterError as error:
        return Unseen(str(error), isinstance(error, Forbidden))


def certificate(gateway: Gateway) -> Certificate | Unseen:
    """The one that the API server shows."""
    try:
        return Certificate("API server", gateway.certificate_ends())
    except ClusterError as error:
        return Unseen(str(error))
