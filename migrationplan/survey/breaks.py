"""What would not work any more once a node pool has moved. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from devices.dra.snapshot import Snapshot
from devices.dra.wording import many
from migrationplan.survey.users import By, PoolFacts, User, owner_of, title

ASKS: Final = ("workload asks", "workloads ask")
CHOOSES: Final = ("workload chooses", "workloads choose")


@dataclass(frozen=True, slots=True)
class Break:
    """Something that would not work any more. ``code`` is stable, ``what`` names the objects."""

    code: str
    sentence: str
    what: tuple[str, ...] = ()


def breaks(
    pool: PoolFacts,
    snapshot: Snapshot,
    users: Sequence[User],
    quotas: Sequence[Mapping[str, Any]],
    sets: Sequence[Mapping[str, Any]],
) -> Iterable[Break]:
    bridged = _bridged(pool, snapshot)
    yield from _without_path(pool, users, bridged)
    yield from _quotas(pool, quotas, bridged)
    yield from _sets(pool, sets)
    yield from _pinned(pool, snapshot)


def _bridged(pool: PoolFacts, snapshot: Snapshot) -> bool:
    """Whether Pods that ask by the extended resource find the devices on DRA too (KEP-5004)."""
    found = snapshot.classes.get(pool.device_class)
    served = "DRAExtendedResource" in snapshot.gates
    return found is not None and served and found.extended_resource == pool.resource


def _without_path(pool: PoolFacts, users: Sequence[User], bridged: bool) -> Iterable[Break]:
    by_name = [user for user in users if user.by in (By.PLUGIN, By.BOTH)]
    if by_name and not bridged:
        owners = sorted({title(user) for user in by_name})
        yield Break(
            "SURVEY_NO_PATH",
            f"{many(len(owners), *ASKS)} for {pool.resource} by name, and class "
            f"{pool.device_class} does not serve that name: what is started anew on a moved node "
            "finds nothing there. Set extendedResourceName of the class, or give them claims.",
            tuple(owners),
        )
    both = sorted({title(user) for user in users if user.by is By.BOTH})
    if both:
        yield Break(
            "SURVEY_BOTH_PATHS",
            f"{many(len(both), *ASKS)} by name and by claim at once: on a plugin node "
            "the claim finds nothing, on a moved node one device is counted on each path.",
            tuple(both),
        )


def _quotas(pool: PoolFacts, quotas: Sequence[Mapping[str, Any]], bridged: bool) -> Iterable[Break]:
    """Quotas that limit the plugin's name, and say nothing of claims of the class."""
    key, new = (
        f"requests.{pool.resource}",
        f"{pool.device_class}.deviceclass.resource.k8s.io/devices",
    )
    found = []
    for quota in quotas:
        hard = (quota.get("spec") or {}).get("hard") or {}
        if key in hard and new not in hard:
            meta = quota.get("metadata") or {}
            found.append(f"{meta.get('namespace')}/{meta.get('name')}: {hard[key]}")
    if found and not bridged:
        yield Break(
            "SURVEY_QUOTA_BY_NAME",
            f"{many(len(found), 'quota counts', 'quotas count')} {pool.resource} only: claims of "
            f"{pool.device_class} are not charged to it, so the limit is gone on moved nodes. "
            f"Add {new}.",
            tuple(sorted(found)),
        )


def _sets(pool: PoolFacts, sets: Sequence[Mapping[str, Any]]) -> Iterable[Break]:
    """DaemonSets that come or go with a switch, beside those that the pool names."""
    switches = {label.partition("=")[0] for label in (pool.plugin_label, pool.driver_label)}
    found = []
    for one in sets:
        meta = one.get("metadata") or {}
        name = f"{meta.get('namespace')}/{meta.get('name')}"
        spec = ((one.get("spec") or {}).get("template") or {}).get("spec") or {}
        used = switches & _keys(spec)
        if used and name not in pool.sets:
            found.append(f"{name}: {', '.join(sorted(used))}")
    if found:
        yield Break(
            "SURVEY_SWITCH_SHARED",
            f"The pool's switches move {many(len(found), 'DaemonSet')} that it does not name: they "
            "come and go with a node, and no proof waits for them.",
            tuple(sorted(found)),
        )


def _pinned(pool: PoolFacts, snapshot: Snapshot) -> Iterable[Break]:
    """Pods that choose nodes by the plugin's switch, which a move takes off."""
    switch = pool.plugin_label.partition("=")[0]
    found = []
    for pod in snapshot.pods.values():
        spec = pod.raw.get("spec")
        if pod.finished or not isinstance(spec, Mapping) or switch not in _keys(spec):
            continue
        kind, name = owner_of(pod.meta)
        if kind != "DaemonSet":
            found.append(f"{pod.meta.namespace}/{name}")
    if found:
        yield Break(
            "SURVEY_PINNED_TO_SWITCH",
            f"{many(len(set(found)), *CHOOSES)} nodes by {switch}, and no node has it once all "
            "have moved. Ask for devices alone.",
            tuple(sorted(set(found))),
        )


def _keys(spec: Mapping[str, Any]) -> set[str]:
    """Labels by which a Pod spec chooses its nodes."""
    keys = set(spec.get("nodeSelector") or {})
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    needed = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in needed.get("nodeSelectorTerms") or ():
        keys |= {str(one.get("key")) for one in term.get("matchExpressions") or ()}
    return keys
