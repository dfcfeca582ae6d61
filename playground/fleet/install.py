"""What vendors' charts install for a driver or a plugin, built whole from the fleet file. Pure.

Least rights, as the charts of real drivers have them: slices, the claims they prepare, their own
driver's device status on their own node; and the admission policy that holds every node's account
to slices of its own driver on its own node (RBAC cannot say that).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from playground.fleet.runs import PREFIX
from playground.fleet.spec import Driver, FleetSpec, Plugin

Obj = dict[str, Any]

PROGRAM = f"{PREFIX}program"
LAST = f"{PREFIX}last"
RBAC = "rbac.authorization.k8s.io"
NODE_NAME = "authentication.kubernetes.io/node-name"


def objects(spec: FleetSpec) -> Iterator[Obj]:
    """Everything of the fleet but nodes and workloads, in an order that works."""
    namespaces = [one.namespace for one in spec.drivers] + [one.namespace for one in spec.plugins]
    for name in dict.fromkeys(namespaces):
        yield namespace(name)
    for driver in spec.drivers:
        yield from driver_objects(driver)
    for plugin in spec.plugins:
        yield from plugin_objects(plugin)
    yield from spec.objects


def namespace(name: str) -> Obj:
    labels = {"pod-security.kubernetes.io/enforce": "privileged"}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": labels},
    }


def slug(name: str) -> str:
    """An object's name out of a driver's: dots are not everywhere allowed."""
    return name.replace(".", "-").replace("/", "-")


def driver_objects(driver: Driver) -> Iterator[Obj]:
    name = f"{slug(driver.name)}-node"
    yield from _account(name, driver, _driver_rules(driver, "associated-node"))
    yield from _policy(name, driver)
    yield _daemon_set(name, driver, f"driver:{driver.name}")
    if driver.controller:
        name = f"{slug(driver.name)}-controller"
        yield from _account(name, driver, _driver_rules(driver, "arbitrary-node"))
        yield _deployment(name, driver)


def plugin_objects(plugin: Plugin) -> Iterator[Obj]:
    name = f"{slug(plugin.name)}-plugin"
    yield _service_account(name, plugin.namespace)
    yield _daemon_set(name, plugin, f"plugin:{plugin.name}")


def _driver_rules(driver: Driver, reach: str) -> list[Obj]:
    rules = [
        _rule("", ["nodes"], ["get"]),
        _rule(
            "resource.k8s.io",
            ["resourceslices"],
            ["get", "list", "watch", "create", "update", "patch", "delete"],
        ),
        _rule("resource.k8s.io", ["resourceclaims"], ["get", "list", "watch"]),
        # What Berth's policy on slices asks for (deploy/policies/slices.yaml).
        {
            **_rule(
                "berth.dev",
                ["drivers"],
                ["publish" if reach == "associated-node" else "publish-anywhere"],
            ),
            "resourceNames": [driver.name],
        },
    ]
    if driver.device_status or reach == "arbitrary-node":
        rules += [
            _rule("resource.k8s.io", ["resourceclaims/status"], ["get", "update", "patch"]),
            {
                **_rule(
                    "resource.k8s.io",
                    ["resourceclaims/driver"],
                    [f"{reach}:update", f"{reach}:patch"],
                ),
                "resourceNames": [driver.name],
            },
        ]
    return rules


def _rule(group: str, resources: list[str], verbs: list[str]) -> Obj:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs}


def _service_account(name: str, namespace: str) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": namespace},
    }


def _account(name: str, driver: Driver, rules: list[Obj]) -> Iterator[Obj]:
    yield _service_account(name, driver.namespace)
    yield {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": rules,
    }
    yield {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": driver.namespace}],
    }


def _policy(name: str, driver: Driver) -> Iterator[Obj]:
    account = f"system:serviceaccount:{driver.namespace}:{name}"
    yield {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": ["resource.k8s.io"],
                        "apiVersions": ["v1", "v1beta1", "v1beta2"],
                        "operations": ["CREATE", "UPDATE", "DELETE"],
                        "resources": ["resourceslices"],
                    }
                ]
            },
            "matchConditions": [
                {"name": "is-the-driver", "expression": f'request.userInfo.username == "{account}"'}
            ],
            "variables": [
                {
                    "name": "userNode",
                    "expression": f"request.userInfo.extra[?'{NODE_NAME}'][0].orValue('')",
                },
                {
                    "name": "slice",
                    "expression": 'request.operation == "DELETE" ? oldObject : object',
                },
            ],
            "validations": [
                {
                    "expression": "variables.userNode != ''",
                    "message": "the account's token names no node",
                },
                {
                    "expression": "variables.slice.spec.?nodeName.orValue('')"
                    " == variables.userNode",
                    "messageExpression": "'this account may only write slices of node '"
                    " + variables.userNode",
                },
                {
                    "expression": f"variables.slice.spec.driver == '{driver.name}'",
                    "message": f"this account may only write slices of driver {driver.name}",
                },
            ],
        },
    }
    yield {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }


def _pod_template(name: str, version: str, program: str, labels: Mapping[str, str]) -> Obj:
    return {
        "metadata": {
            "labels": {"app.kubernetes.io/name": name, "app.kubernetes.io/version": version},
            "annotations": {PROGRAM: program},
        },
        "spec": {
            "serviceAccountName": name,
            "priorityClassName": "system-node-critical",
            "nodeSelector": dict(labels),
            "tolerations": [{"operator": "Exists"}],
            "containers": [
                {
                    "name": program.partition(":")[0],
                    "image": f"{PREFIX}{program.replace(':', '/')}:{version}",
                    "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
                }
            ],
        },
    }


def _daemon_set(name: str, part: Driver | Plugin, program: str) -> Obj:
    labels = {"app.kubernetes.io/name": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": part.namespace, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            # A driver's node must never have two of it: the old one goes first.
            "updateStrategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
            },
            "template": _pod_template(name, part.version, program, part.node_labels),
        },
    }


def _deployment(name: str, driver: Driver) -> Obj:
    labels = {"app.kubernetes.io/name": name}
    template = _pod_template(
        name, driver.version, f"controller:{driver.name}", driver.controller_labels
    )
    template["spec"]["priorityClassName"] = "system-cluster-critical"
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": driver.namespace, "labels": labels},
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels},
            "template": template,
        },
    }


def is_last(workload: Obj) -> bool:
    """Whether a workload is to be made only when all others have their nodes."""
    return bool(workload["metadata"].get("annotations", {}).get(LAST))


def pod_count(workload: Obj) -> int:
    """How many Pods a workload has once its controller has made them; last ones do not count."""
    if is_last(workload):
        return 0
    match workload:
        case {"kind": "Pod"}:
            return 1
        case {"kind": "Deployment" | "StatefulSet", "spec": spec}:
            return int(spec.get("replicas", 1))
        case {"kind": "Job", "spec": spec}:
            return int(spec.get("parallelism", 1))
    return 0
