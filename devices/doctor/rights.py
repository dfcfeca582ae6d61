"""Rights as single grains: those that `deploy/rbac` gives, against those that an account has. Pure.

A grain is one verb on one resource in one place. What an account needs is what Berth's manifests
say; what it has is what the API server answers, and both are compared grain by grain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

Obj = Mapping[str, Any]


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One verb. `namespace` is empty for everywhere; `path` is set for what is no resource."""

    verb: str
    group: str = ""
    resource: str = ""
    name: str = ""
    namespace: str = ""
    path: str = ""

    def __str__(self) -> str:
        if self.path:
            return f"{self.verb} {self.path}"
        kind = f"{self.resource}.{self.group}" if self.group else self.resource
        name = f" {self.name}" if self.name else ""
        return f"{self.verb} {kind}{name}" + (f" in {self.namespace}" if self.namespace else "")

    @property
    def wide(self) -> bool:
        return "*" in (self.verb, self.group, self.resource) or self.path.endswith("*")


def needed(objects: Iterable[Obj]) -> dict[str, frozenset[Right]]:
    """By account: what roles and bindings of `deploy/rbac` give; nothing for one without any."""
    objects = list(objects)
    rules = {
        (one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]): one["rules"]
        for one in objects
        if one["kind"] in ("ClusterRole", "Role")
    }
    found: dict[str, set[Right]] = {
        one["metadata"]["name"]: set() for one in objects if one["kind"] == "ServiceAccount"
    }
    for one in objects:
        if one["kind"] not in ("ClusterRoleBinding", "RoleBinding"):
            continue
        place = one["metadata"].get("namespace", "")
        role = one["roleRef"]
        key = (role["kind"], place if role["kind"] == "Role" else "", role["name"])
        for subject in one["subjects"]:
            found.setdefault(subject["name"], set()).update(
                right for rule in rules[key] for right in grains(rule, place)
            )
    return {account: frozenset(rights) for account, rights in found.items()}


def grains(rule: Obj, namespace: str = "") -> Iterator[Right]:
    """The grains of one rule, as RBAC or a rules review writes it."""
    for verb in rule.get("verbs") or ():
        for path in rule.get("nonResourceURLs") or ():
            yield Right(verb, path=path)
        for group in rule.get("apiGroups") or ():
            for resource in rule.get("resources") or ():
                for name in rule.get("resourceNames") or ("",):
                    yield Right(verb, group, resource, name, namespace)


#: What Kubernetes lets everybody do who is signed in (bootstrappolicy: basic-user, discovery,
#: public-info-viewer, service-account-issuer-discovery, cluster-trust-bundle-discovery).
_ANYBODY: Final = frozenset(
    {
        *(
            Right("create", group, resource)
            for group, resource in (
                ("authorization.k8s.io", "selfsubjectaccessreviews"),
                ("authorization.k8s.io", "selfsubjectrulesreviews"),
                ("authentication.k8s.io", "selfsubjectreviews"),
            )
        ),
        *(
            Right(verb, "certificates.k8s.io", "clustertrustbundles")
            for verb in ("get", "list", "watch")
        ),
    }
)
_ANYBODYS_PATHS: Final = (
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/healthz",
    "/livez",
    "/livez/*",
    "/readyz",
    "/readyz/*",
    "/openapi",
    "/openapi/*",
    "/version",
    "/version/",
    "/.well-known/openid-configuration",
    "/.well-known/openid-configuration/",
    "/openid/v1/jwks",
    "/openid/v1/jwks/",
)


def anybodys(right: Right) -> bool:
    """Whether Kubernetes gives it to everybody who is signed in, Berth's accounts too."""
    if right.path:
        below = any(
            one.endswith("/*") and right.path.startswith(one[:-1]) for one in _ANYBODYS_PATHS
        )
        return right.verb == "get" and (right.path in _ANYBODYS_PATHS or below)
    return Right(right.verb, right.group, right.resource) in _ANYBODY


def too_many(has: Iterable[Right], needs: Iterable[Right]) -> tuple[Right, ...]:
    """Grains that an account has and does not need, besides what anybody may.

    What it has in one namespace it may need in that namespace, or everywhere.
    """
    wanted = frozenset(needs)
    found = set()
    for right in has:
        if anybodys(right):
            continue
        if right.path:
            covered = Right(right.verb, path=right.path) in wanted
        else:
            covered = any(
                Right(right.verb, right.group, right.resource, name, place) in wanted
                for name in {right.name, ""}
                for place in {right.namespace, ""}
            )
        if not covered:
            found.add(right)
    return tuple(sorted(found))


# What Berth can no longer do when a grain is missing: account, resource (with its group where two
# would be meant), then verbs. A test wants a sentence for every grain of deploy/rbac.
_SEND = "send what tenants ask for"
_LOOK = "see what became of an ask"
_PAST = "learn whether others deleted what was being sent"
_END = "release an ask or clean up a leak"
_FOLLOW = "follow {resource} into the mirror"
FUNCTIONS: Final[dict[tuple[str, str], dict[str, str]]] = {
    ("berth-worker", "resourceclaims"): {
        "create": _SEND, "patch": _SEND, "get": _LOOK, "list": _LOOK, "delete": _END,
        "watch": _PAST,
    },
    ("berth-worker", "resourceclaimtemplates"): {
        "create": _SEND, "patch": _SEND, "get": _LOOK, "list": _LOOK, "delete": _END,
        "watch": _PAST,
    },
    ("berth-worker", "namespaces"): {
        "get": "see how a tenant's namespace stands",
        "create": "make namespaces for tenants",
        "patch": "write on namespaces what their tenant may have",
    },
    ("berth-worker", "resourcequotas"): {
        "get": "see the quota of a tenant's namespace",
        "create": "hold tenants to their limits by quota",
        "patch": "hold tenants to their limits by quota",
        "delete": "take its quota from a namespace that leaves its tenant",
    },
    ("berth-worker", "nodes"): {
        "get": "look at a node under conversion",
        "patch": "close, label and open nodes under conversion",
    },
    ("berth-worker", "resourceslices"): {"list": "prove what a driver publishes"},
    ("berth-worker", "devicetaintrules"): {
        "get": "see how an isolation stands",
        "create": "isolate devices that keep failing",
        "patch": "isolate devices that keep failing",
        "delete": "end an isolation",
    },
    ("berth-worker", "daemonsets"): {
        "get": "look at what runs a driver",
        "list": "look at what runs a driver",
        "patch": "change what runs a driver",
    },
    ("berth-worker", "pods"): {
        "list": "wait for a tenant's Pods while it is closed",
        "get": "run trials, canaries and probes on nodes",
        "create": "run trials, canaries and probes on nodes",
        "delete": "run trials, canaries and probes on nodes",
    },
    ("berth-worker", "pods/eviction"): {"create": "move Pods off a node"},
    ("berth-worker", "configmaps"): {
        verb: "keep the parameter of the policies" for verb in ("get", "create", "patch")
    },
    ("berth-worker", "serviceaccounts"): {
        "impersonate": "ask the API server about manifests without writing them",
    },
    ("berth-worker", "validatingadmissionpolicies"): {"get": "compare the policies with Berth's"},
    ("berth-worker", "validatingadmissionpolicybindings"): {
        "get": "compare the policies with Berth's",
    },
    ("berth-watch", "/readyz"): {"get": "notice that the API server is away"},
    ("berth-watch", "/version"): {"get": "tell which release it talks to"},
    ("berth-watch", "/api"): {"get": "find out which kinds are served"},
    ("berth-watch", "/apis"): {"get": "find out which kinds are served"},
    ("berth-watch", "/metrics"): {"get": "find out which features are on"},
    ("berth-watch", "/openapi/v3/apis/resource.k8s.io/v1"): {
        "get": "find out which fields the cluster's types have",
    },
    ("berth-watch", "namespaces"): {
        "get": "tell one cluster from another", "list": _FOLLOW, "watch": _FOLLOW,
    },
    ("berth-probe", "drivers"): {"publish-anywhere": "find out whether slices keep a field"},
    ("berth-node-probe", "nodes/metrics"): {"get": "read on a node which claims are in use"},
}  # fmt: skip
_ANY_OF: Final = {
    ("berth-watch", "list"): _FOLLOW,
    ("berth-watch", "watch"): _FOLLOW,
    ("berth-probe", "create"): "ask the API server what it makes of {resource}",
}


def function_of(account: str, right: Right) -> str:
    """What needs the right, in words that follow "cannot"; empty where nobody wrote any."""
    known = FUNCTIONS.get((account, right.path or right.resource), {}).get(right.verb)
    return (known or _ANY_OF.get((account, right.verb), "")).format(resource=right.resource)
