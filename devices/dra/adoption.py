"""What is in a namespace before a tenant adopts it, and what would be refused there from then on.

Admission judges what is made, never what is there: nothing that the survey finds is stopped or
changed by adopting. What "would break" is the next thing like it. Kubernetes does not keep who made
an object; what is said is its controller, or the tool that labelled it. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from devices.dra.claims import ClaimSpec, read_claim_spec
from devices.dra.meta import Meta, read_meta
from devices.dra.names import ISOLATED_TAINT, QUIESCING_TAINT, TENANT_LABEL
from devices.dra.namespaces import EVERY, IMPLICIT, PREFIX, QUOTA_NAME
from devices.dra.pods import Pod, read_pod
from devices.dra.quota import devices_asked
from devices.dra.reading import Raw, Unreadable
from devices.dra.taints import Toleration
from devices.dra.tenantpods import resources, used

#: Who labels objects with the tool that made them (Kubernetes' recommended labels).
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
ADMIN_LABEL: Final = "resource.kubernetes.io/admin-access"
#: Namespaces of Kubernetes and of Berth itself.
RESERVED: Final = ("kube-", "berth-system")


@dataclass(frozen=True, slots=True)
class Allowed:
    """What the tenant may use: classes (`*` = every), and explicit extended-resource names.

    `guarded` maps classes to their explicit extended-resource names, whether allowed or not.
    """

    classes: frozenset[str]
    names: frozenset[str]
    guarded: Mapping[str, str]

    def class_allowed(self, name: str) -> bool:
        return EVERY in self.classes or name in self.classes

    def resource_allowed(self, name: str) -> bool:
        if name.startswith(IMPLICIT):
            return self.class_allowed(name.removeprefix(IMPLICIT))
        return EVERY in self.names or name in self.names


@dataclass(frozen=True, slots=True)
class Found:
    """One thing in the namespace: what it is about, in words, and by whom it was made if known."""

    kind: str
    name: str
    what: str
    made_by: str = ""


@dataclass(frozen=True, slots=True)
class Clash:
    """Something that would be refused from now on, or that Berth takes over."""

    code: str
    subject: str
    why: str


@dataclass(frozen=True, slots=True)
class Survey:
    """A namespace as it is. `stops` are reasons why it cannot be adopted at all.

    `devices` is what its claims ask for by class, which counts against the tenant's limits as
    outside.
    """

    name: str
    things: tuple[Found, ...] = ()
    clashes: tuple[Clash, ...] = ()
    stops: tuple[Clash, ...] = ()
    devices: Mapping[str, int] | None = None
    claims: int = 0

    def of(self, kind: str) -> tuple[Found, ...]:
        return tuple(thing for thing in self.things if thing.kind == kind)

    @property
    def counts(self) -> dict[str, int]:
        """How many of each kind, for the audit."""
        return dict(Counter(thing.kind for thing in self.things))


def survey(
    name: str,
    namespace: Raw | None,
    objects: Iterable[Raw],
    *,
    tenant: str,
    allowed: Allowed,
) -> Survey:
    """Looks through a namespace's claims, templates, quotas and Pods (`kind` on each)."""
    stops = tuple(_stops(name, namespace, tenant))
    things: list[Found] = []
    clashes: list[Clash] = list(_of_namespace(namespace)) if namespace else []
    devices: Counter[str] = Counter()
    claims = 0
    for obj in objects:
        try:
            meta = read_meta(obj)
            match obj.get("kind"):
                case "ResourceClaim" | "ResourceClaimTemplate" as kind:
                    spec = _spec(obj, kind)
                    things.append(Found(kind, meta.name, _classes(spec), made_by(meta)))
                    clashes += _of_claim(f"{kind} {meta.name}", obj, meta, spec, allowed)
                    if kind == "ResourceClaim":
                        devices.update(devices_asked(spec))
                        claims += 1
                case "ResourceQuota":
                    what = _amounts((obj.get("spec") or {}).get("hard"))
                    things.append(Found("ResourceQuota", meta.name, what, made_by(meta)))
                    clashes += _of_quota(meta)
                case "Pod":
                    pod = read_pod(obj)
                    uses = used(pod, allowed.guarded.values())
                    if uses and not pod.finished:
                        what = f"uses {', '.join(sorted(uses))}"
                        things.append(Found("Pod", meta.name, what, made_by(meta)))
                        clashes += _of_pod(pod, allowed)
        except Unreadable as why:
            unread = str((obj.get("metadata") or {}).get("name") or "?")
            kind = str(obj.get("kind") or "?")
            things.append(Found(kind, unread, "cannot be read"))
            clashes.append(Clash("UNREADABLE", f"{kind} {unread}", str(why)))
    return Survey(name, tuple(things), tuple(clashes), stops, dict(devices), claims)


def made_by(meta: Meta) -> str:
    """Its controller, or the tool that labelled it; empty where nothing says so."""
    owner = next((one for one in meta.owners if one.controller), None)
    if owner is not None:
        return f"{owner.kind} {owner.name}"
    return meta.labels.get(MANAGED_BY, "")


def reserved(name: str) -> bool:
    """Whether a namespace is Kubernetes' own or Berth's."""
    return name.startswith(RESERVED)


def _stops(name: str, namespace: Raw | None, tenant: str) -> Iterator[Clash]:
    subject = f"Namespace {name}"
    if reserved(name):
        yield Clash("NAMESPACE_RESERVED", subject, "It belongs to Kubernetes or to Berth itself.")
    if namespace is None:
        why = "The cluster has no namespace of that name; let Berth make it."
        yield Clash("NAMESPACE_MISSING", subject, why)
        return
    meta = read_meta(namespace)
    if meta.deleted is not None:
        yield Clash("NAMESPACE_LEAVING", subject, "It is being deleted.")
    owner = meta.labels.get(TENANT_LABEL, "")
    if owner not in ("", tenant):
        why = f"It is labelled as {owner}'s. Berth does not overrule that."
        yield Clash("NAMESPACE_OF_ANOTHER", subject, why)


def _of_namespace(namespace: Raw) -> Iterator[Clash]:
    meta = read_meta(namespace)
    if meta.labels.get(ADMIN_LABEL) == "true":
        yield Clash(
            "ADMIN_ACCESS",
            f"Namespace {meta.name}",
            f"The label {ADMIN_LABEL} opens the way to devices that others use; with Berth's "
            "policies it opens nothing any more. Take it off.",
        )


def _of_claim(
    subject: str, obj: Raw, meta: Meta, spec: ClaimSpec, allowed: Allowed
) -> Iterator[Clash]:
    outside = sorted(name for name in devices_asked(spec) if not allowed.class_allowed(name))
    if outside:
        yield Clash(
            "CLASS_NOT_ALLOWED",
            subject,
            f"It asks for {', '.join(outside)}, which the tenant may not use: this one stays, the "
            "next one like it is denied.",
        )
    if any(ask.admin for request in spec.requests for ask in request.asks):
        why = "It has administrative access; the next one like it is denied."
        yield Clash("ADMIN_ACCESS", subject, why)
    if any(
        _passes(one) for request in spec.requests for ask in request.asks for one in ask.tolerations
    ):
        why = "It tolerates the taint of devices that keep failing; the next one like it is denied."
        yield Clash("ISOLATION_TOLERATED", subject, why)
    template = (obj.get("spec") or {}).get("metadata") or {}
    names = [
        *meta.labels,
        *meta.annotations,
        *(template.get("labels") or {}),
        *(template.get("annotations") or {}),
    ]
    if own := sorted(name for name in names if name.startswith(PREFIX)):
        why = f"It carries {', '.join(own)}, which only Berth writes; the next one is denied."
        yield Clash("OWN_NAMES", subject, why)


def _passes(toleration: Toleration) -> bool:
    """Whether a request with it gets devices that Berth closes, as `berth-claim-placement` says."""
    covers = not toleration.key or toleration.key.startswith(PREFIX)
    return covers and toleration.effect in ("", "NoSchedule")


def _of_quota(meta: Meta) -> Iterator[Clash]:
    if meta.name == QUOTA_NAME:
        why = "Berth's quota has this name: its amounts are replaced by the tenant's limits."
        yield Clash("QUOTA_REPLACED", f"ResourceQuota {meta.name}", why)


def _of_pod(pod: Pod, allowed: Allowed) -> Iterator[Clash]:
    subject = f"Pod {pod.meta.name}"
    names = resources(pod, allowed.guarded.values())
    if outside := sorted(name for name in names if not allowed.resource_allowed(name)):
        yield Clash(
            "CLASS_NOT_ALLOWED",
            subject,
            f"It asks for {', '.join(outside)}, which the tenant may not use: it goes on, the "
            "Pod that replaces it is denied.",
        )
    if any(
        one.key in ("", QUIESCING_TAINT, ISOLATED_TAINT) and one.effect in ("", "NoSchedule")
        for one in pod.tolerations
    ):
        why = "It tolerates taints of Berth's: it goes on, the Pod that replaces it is denied."
        yield Clash("QUIESCING_TOLERATED", subject, why)


def _spec(obj: Raw, kind: str) -> ClaimSpec:
    spec: Any = obj.get("spec") or {}
    return read_claim_spec(spec.get("spec") if kind.endswith("Template") else spec, "spec", [])


def _classes(spec: ClaimSpec) -> str:
    asked = devices_asked(spec)
    return ", ".join(f"{count} × {name}" for name, count in sorted(asked.items())) or "no devices"


def _amounts(hard: object) -> str:
    found: Collection[tuple[str, Any]] = hard.items() if isinstance(hard, Mapping) else ()
    return ", ".join(f"{name}: {amount}" for name, amount in sorted(found)) or "limits nothing"
