"""Judging the admission policies: installed, those of this Berth, and in force. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from devices.doctor.findings import Area, Finding, Section, Severity
from devices.doctor.seen import Parameter, Policy, Seen, Unseen
from devices.dra.names import POLICY_CONFIG_MAP


def policies(seen: Seen) -> Section:
    """Each object of `deploy/policies`: there, the same, and denying."""
    if isinstance(seen.policies, Unseen):
        return Section(
            Area.POLICIES,
            "Not seen.",
            (
                Finding(
                    "POLICIES_NOT_LOOKED_AT",
                    Severity.WARNING,
                    "deploy/policies",
                    seen.policies.why,
                    "Give the worker its right to read them (deploy/rbac/worker.yaml), or run "
                    "manage.py doctor with a kubeconfig that may.",
                ),
            ),
        )
    found = [one for policy in seen.policies for one in _policy(policy)]
    well = len(seen.policies) - len({one.subject for one in found})
    return Section(
        Area.POLICIES,
        f"{well} of {len(seen.policies)} are those of this Berth.",
        (*found, *_parameter(seen.parameter)),
    )


def _parameter(parameter: Parameter | Unseen) -> list[Finding]:
    subject = f"ConfigMap {POLICY_CONFIG_MAP}"
    if isinstance(parameter, Unseen):
        return [
            Finding(
                "PARAMETER_NOT_LOOKED_AT",
                Severity.WARNING,
                subject,
                f"Nobody could tell which version of it the API server judges by: {parameter.why}",
                "Apply deploy/policies and deploy/rbac, then look again.",
            )
        ]
    if parameter.read == parameter.written:
        return []
    judged = f"version {parameter.read}" if parameter.read else "none"
    return [
        Finding(
            "PARAMETER_STALE",
            Severity.ERROR,
            subject,
            f"The API server judges by {judged} of it, and version "
            f"{parameter.written or 'none'} is written: what was "
            "frozen or renamed since does not hold for kubectl.",
            "Restart this API server (kubernetes#130887). Policies that are replaced later are "
            "applied over the old ones, never deleted first.",
        )
    ]


def _policy(policy: Policy) -> list[Finding]:
    subject = f"{policy.kind} {policy.name}"
    if policy.found is None:
        return [
            Finding(
                "POLICY_MISSING",
                Severity.ERROR,
                subject,
                "It is not installed: what it forbids can be done with kubectl.",
                "Apply deploy/policies as an administrator.",
            )
        ]
    actions = policy.found.get("spec", {}).get("validationActions")
    wanted = policy.wanted.get("spec", {}).get("validationActions")
    if wanted and "Deny" in wanted and "Deny" not in (actions or ()):
        return [
            Finding(
                "POLICY_NOT_ENFORCED",
                Severity.ERROR,
                subject,
                f"It only says {', '.join(actions or ()) or 'nothing'}, and denies nobody.",
                "Set validationActions to [Deny] when you have seen who would be denied.",
            )
        ]
    where = difference(policy.wanted, policy.found)
    if where:
        return [
            Finding(
                "POLICY_DIFFERS",
                Severity.ERROR,
                subject,
                f"It is not the one of this Berth: {where}.",
                "Apply deploy/policies of this release as an administrator.",
            )
        ]
    return []


def difference(wanted: Any, found: Any, path: str = "") -> str:
    """Where what is there is not as wanted; empty where it is.

    The API server adds defaults, so that more fields than wanted are no difference.
    """
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        for key, value in wanted.items():
            if key in ("apiVersion", "kind"):
                continue
            below = f"{path}.{key}" if path else str(key)
            if key not in found and value in ({}, [], "", None):
                continue
            if where := difference(value, found.get(key), below):
                return where
        return ""
    if isinstance(wanted, list) and isinstance(found, list):
        if len(wanted) != len(found):
            return f"{path} has {len(found)} entries instead of {len(wanted)}"
        for number, (one, other) in enumerate(zip(wanted, found, strict=True)):
            if where := difference(one, other, f"{path}[{number}]"):
                return where
        return ""
    return "" if wanted == found else f"{path} differs"
