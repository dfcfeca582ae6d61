"""The kinds Berth touches: where the API server serves them, best version first.

Only a table: which of the versions a cluster serves is found by discovery (`live.py`), because
all of resource.k8s.io but v1 is off by default and may come or go with an upgrade.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind; `group` is empty for the core group, `versions` are tried in their order."""

    name: str
    group: str
    versions: tuple[str, ...]
    plural: str
    namespaced: bool = True

    def api_version(self, version: str) -> str:
        return f"{self.group}/{version}" if self.group else version


RESOURCE = "resource.k8s.io"

# v1 of the four core kinds is served since 1.34, the oldest release we support.
_TABLE = (
    Kind("DeviceClass", RESOURCE, ("v1",), "deviceclasses", namespaced=False),
    Kind("ResourceSlice", RESOURCE, ("v1",), "resourceslices", namespaced=False),
    Kind("ResourceClaim", RESOURCE, ("v1",), "resourceclaims"),
    Kind("ResourceClaimTemplate", RESOURCE, ("v1",), "resourceclaimtemplates"),
    # v1alpha3 only through 1.35, v1beta2 beside it in 1.36, v1 (and on by default) from 1.37.
    Kind(
        "DeviceTaintRule",
        RESOURCE,
        ("v1", "v1beta2", "v1alpha3"),
        "devicetaintrules",
        namespaced=False,
    ),
    Kind(
        "ResourcePoolStatusRequest",
        RESOURCE,
        ("v1", "v1beta2", "v1alpha3"),
        "resourcepoolstatusrequests",
        namespaced=False,
    ),
    Kind("Pod", "", ("v1",), "pods"),
    Kind("PodTemplate", "", ("v1",), "podtemplates"),
    Kind("ReplicationController", "", ("v1",), "replicationcontrollers"),
    Kind("Node", "", ("v1",), "nodes", namespaced=False),
    Kind("Namespace", "", ("v1",), "namespaces", namespaced=False),
    Kind("ResourceQuota", "", ("v1",), "resourcequotas"),
    Kind("Event", "", ("v1",), "events"),
    Kind("ConfigMap", "", ("v1",), "configmaps"),
    Kind("Secret", "", ("v1",), "secrets"),
    Kind("ServiceAccount", "", ("v1",), "serviceaccounts"),
    Kind("DaemonSet", "apps", ("v1",), "daemonsets"),
    Kind("Deployment", "apps", ("v1",), "deployments"),
    Kind("ReplicaSet", "apps", ("v1",), "replicasets"),
    Kind("StatefulSet", "apps", ("v1",), "statefulsets"),
    Kind("Job", "batch", ("v1",), "jobs"),
    Kind("CronJob", "batch", ("v1",), "cronjobs"),
    Kind("PodDisruptionBudget", "policy", ("v1",), "poddisruptionbudgets"),
    Kind("Lease", "coordination.k8s.io", ("v1",), "leases"),
    Kind("Role", "rbac.authorization.k8s.io", ("v1",), "roles"),
    Kind("RoleBinding", "rbac.authorization.k8s.io", ("v1",), "rolebindings"),
    Kind("ClusterRole", "rbac.authorization.k8s.io", ("v1",), "clusterroles", namespaced=False),
    Kind(
        "ClusterRoleBinding",
        "rbac.authorization.k8s.io",
        ("v1",),
        "clusterrolebindings",
        namespaced=False,
    ),
    Kind(
        "ValidatingAdmissionPolicy",
        "admissionregistration.k8s.io",
        ("v1",),
        "validatingadmissionpolicies",
        namespaced=False,
    ),
    Kind(
        "ValidatingAdmissionPolicyBinding",
        "admissionregistration.k8s.io",
        ("v1",),
        "validatingadmissionpolicybindings",
        namespaced=False,
    ),
    Kind(
        "SelfSubjectAccessReview",
        "authorization.k8s.io",
        ("v1",),
        "selfsubjectaccessreviews",
        namespaced=False,
    ),
    Kind(
        "SelfSubjectRulesReview",
        "authorization.k8s.io",
        ("v1",),
        "selfsubjectrulesreviews",
        namespaced=False,
    ),
    Kind(
        "SelfSubjectReview",
        "authentication.k8s.io",
        ("v1",),
        "selfsubjectreviews",
        namespaced=False,
    ),
)

KINDS: dict[str, Kind] = {kind.name: kind for kind in _TABLE}
