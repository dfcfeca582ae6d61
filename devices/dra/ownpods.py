"""Pods of Berth's own in `berth-system`: a trial that must be kept off, a canary that must run, and
the probe that looks at a node from inside. Each carries the move that it is for. Pure.
"""

from __future__ import annotations

from typing import Any, Final

from devices.dra.names import (
    MANAGED_LABEL,
    MOVE_LABEL,
    QUIESCING_TAINT,
    ROLE_LABEL,
    SYSTEM_NAMESPACE,
)

Obj = dict[str, Any]

TRIAL, CANARY, PROBE, ATTEMPT = "trial", "canary", "probe", "attempt"
PROBE_ACCOUNT: Final = "berth-node-probe"
_QUIET: Final[Obj] = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def trial_pod(
    name: str, node: str, image: str, other_taints: tuple[tuple[str, str], ...], *, move: str
) -> Obj:
    """A Pod for this node alone that tolerates every taint of it but the quiescing one.

    ``other_taints`` are (key, effect). It asks for nothing, so that nothing else keeps it off.
    """
    tolerations = [
        {"key": key, "operator": "Exists", "effect": effect}
        for key, effect in other_taints
        if key != QUIESCING_TAINT
    ]
    return _pod(name, TRIAL, move, image, node, tolerations, {})


def canary_pod(name: str, node: str, image: str, resource: str, *, move: str) -> Obj:
    """A Pod for this node alone that enters it closed and asks for one device by its extended
    resource, by whichever path that leads.
    """
    tolerations = [{"key": QUIESCING_TAINT, "operator": "Exists", "effect": "NoSchedule"}]
    return _pod(name, CANARY, move, image, node, tolerations, {"limits": {resource: "1"}})


def claim_pod(name: str, node: str, image: str, tolerated: str) -> Obj:
    """A Pod for this node alone that enters it past one taint, with the claim of its own name."""
    tolerations = [{"key": tolerated, "operator": "Exists", "effect": "NoSchedule"}]
    pod = _pod(name, CANARY, "", image, node, tolerations, {"claims": [{"name": "canary"}]})
    pod["spec"]["resourceClaims"] = [{"name": "canary", "resourceClaimName": name}]
    return pod


def attempt_pod(name: str, image: str, claim: str) -> Obj:
    """A Pod that names a claim which is not of its namespace, and so must get nothing."""
    entry = {"name": "others", "resourceClaimName": claim}
    container = {"name": "wait", "image": image, "securityContext": _QUIET}
    labels = {MANAGED_LABEL: "true", ROLE_LABEL: ATTEMPT}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": SYSTEM_NAMESPACE, "labels": labels},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "resourceClaims": [entry],
            "containers": [{**container, "resources": {"claims": [{"name": "others"}]}}],
        },
    }


def _pod(
    name: str, role: str, move: str, image: str, node: str, tolerations: list[Obj], needs: Obj
) -> Obj:
    here = {"key": "metadata.name", "operator": "In", "values": [node]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchFields": [here]}]
    }}}  # fmt: skip
    container = {"name": "wait", "image": image, "securityContext": _QUIET}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(name, role, move),
        "spec": {
            "affinity": affinity,
            "tolerations": tolerations,
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "containers": [{**container, **({"resources": needs} if needs else {})}],
        },
    }


def probe_pod(name: str, node: str, image: str, resource: str, port: str, *, move: str) -> Obj:
    """One look at a node; what it saw is its termination message (`deploy/nodeprobe`)."""
    environment = {
        "BERTH_RESOURCE": resource,
        "BERTH_KUBELET_PORT": port,
        "BERTH_TOKEN_FILE": "/var/run/secrets/berth/token",
    }
    folder = "/var/lib/kubelet/pod-resources"
    token = {"serviceAccountToken": {"path": "token", "expirationSeconds": 600}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(name, PROBE, move),
        "spec": {
            # Looks at this node and no other; the scheduler has nothing to decide.
            "nodeName": node,
            "tolerations": [{"operator": "Exists"}],
            "restartPolicy": "Never",
            "activeDeadlineSeconds": 60,
            "terminationGracePeriodSeconds": 1,
            "hostNetwork": True,
            "serviceAccountName": PROBE_ACCOUNT,
            "automountServiceAccountToken": False,
            "containers": [
                {
                    "name": "probe",
                    "image": image,
                    "imagePullPolicy": "IfNotPresent",
                    "env": [{"name": key, "value": value} for key, value in environment.items()],
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                    "securityContext": _QUIET,
                    "volumeMounts": [
                        {"name": "pod-resources", "mountPath": folder, "readOnly": True},
                        {
                            "name": "token",
                            "mountPath": "/var/run/secrets/berth",
                            "readOnly": True,
                        },
                    ],
                }
            ],
            "volumes": [
                {"name": "pod-resources", "hostPath": {"path": folder, "type": "Directory"}},
                {"name": "token", "projected": {"sources": [token]}},
            ],
        },
    }


def _metadata(name: str, role: str, move: str) -> Obj:
    return {
        "name": name,
        "namespace": SYSTEM_NAMESPACE,
        "labels": {MANAGED_LABEL: "true", ROLE_LABEL: role, MOVE_LABEL: move},
    }
