"""Judging one look: what is wrong, how grave it is, and what to do. Pure; `now` is in the look."""

from __future__ import annotations

from typing import Final

from devices.doctor.accounts import rights
from devices.doctor.findings import Area, Finding, Report, Section, Severity
from devices.doctor.policies import policies
from devices.doctor.releases import NEWEST_TRIED, OLDEST, changes_after, unfit, version_of
from devices.doctor.seen import Broker, Cluster, Database, Seen, Unseen
from devices.doctor.times import CLOCKS_APART, certificates, clocks
from devices.dra.wording import some_of

ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO
OLDEST_DATABASE: Final = 16
LATE_SECONDS: Final = 900
LONG_QUEUE: Final = 1000
LITTLE_DISK: Final = 0.1
GIB: Final = 1024**3
#: Kinds without which Berth has nothing to show; the others it does without.
CORE: Final = ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice")
CORE_GATE: Final = "DynamicResourceAllocation"


def examine(seen: Seen) -> Report:
    """Everything that was looked at, area by area."""
    return Report(
        (
            _database(seen.database),
            _broker(seen.broker),
            _cluster(seen),
            rights(seen),
            policies(seen),
            _watch(seen),
            _queue(seen),
            clocks(seen),
            certificates(seen),
            _audit(seen),
            _disks(seen),
            _upgrade(seen),
        )
    )


def _database(database: Database) -> Section:
    found = []
    major = database.version // 10_000
    if major < OLDEST_DATABASE:
        found.append(
            Finding(
                "DATABASE_OLD",
                WARNING,
                "PostgreSQL",
                f"It is PostgreSQL {major}; Berth is tried with {OLDEST_DATABASE} and newer.",
                "Upgrade PostgreSQL when you can.",
            )
        )
    if database.pending:
        found.append(
            Finding(
                "MIGRATIONS_PENDING",
                ERROR,
                "tables",
                f"{len(database.pending)} migrations are not applied: "
                f"{some_of(database.pending, 5)}.",
                "Run manage.py migrate.",
            )
        )
    size = database.size_bytes / GIB
    return Section(Area.DATABASE, f"PostgreSQL {major} answers; {size:.1f} GiB.", tuple(found))


def _broker(broker: Broker | Unseen) -> Section:
    if isinstance(broker, Unseen):
        away = Finding(
            "BROKER_AWAY",
            ERROR,
            "Valkey",
            f"It does not answer: {broker.why}",
            "Look at Valkey. Work is promised in PostgreSQL and goes on when it is back.",
        )
        return Section(Area.BROKER, "Not seen.", (away,))
    found = []
    if broker.policy not in ("", "noeviction"):
        found.append(
            Finding(
                "BROKER_EVICTS",
                WARNING,
                "Valkey",
                f"When its memory is full it evicts ({broker.policy}), messages too; the outbox "
                "brings them back late.",
                "Set maxmemory-policy to noeviction.",
            )
        )
    return Section(Area.BROKER, f"Version {broker.version} answers.", tuple(found))


def _cluster(seen: Seen) -> Section:
    cluster = seen.cluster
    if isinstance(cluster, Unseen):
        away = Finding(
            "CLUSTER_AWAY",
            ERROR,
            "API server",
            f"It gave no answer: {cluster.why}",
            "Look at the API server, the kubeconfig (BERTH_KUBECONFIG) and the network between.",
        )
        return Section(Area.CLUSTER, "Not seen.", (away, *_gates(seen)))
    found = [*_release(cluster), *_kinds(cluster), *_gates(seen)]
    served = sum(bool(version) for version in cluster.kinds.values())
    words = f"{cluster.release}; {served} of {len(cluster.kinds)} kinds are served."
    return Section(Area.CLUSTER, words, tuple(found))


def _release(cluster: Cluster) -> list[Finding]:
    version = version_of(cluster.release)
    if version is None:
        return []
    found = [
        Finding(
            "RELEASE_UNFIT",
            ERROR,
            cluster.release,
            f"{one.harm} ({one.issue})",
            f"Upgrade to v{'.'.join(map(str, one.fixed))} or newer.",
        )
        for one in unfit(version)
    ]
    if version < OLDEST:
        found.append(
            Finding(
                "RELEASE_UNSUPPORTED",
                ERROR,
                cluster.release,
                f"Berth supports v{'.'.join(map(str, OLDEST))} and newer.",
                "Upgrade the cluster.",
            )
        )
    if version[:2] > NEWEST_TRIED:
        found.append(
            Finding(
                "RELEASE_UNTRIED",
                WARNING,
                cluster.release,
                f"Berth was tried up to v{'.'.join(map(str, NEWEST_TRIED))}.",
                "Look for a newer Berth before you rely on it.",
            )
        )
    return found


def _kinds(cluster: Cluster) -> list[Finding]:
    return [
        Finding(
            "KIND_NOT_SERVED",
            ERROR if kind in CORE else INFO,
            kind,
            "This API server does not serve it.",
            "Without it there is no DRA: see the API server's --runtime-config."
            if kind in CORE
            else "Nothing must be done; Capabilities says what Berth does without it.",
        )
        for kind, version in sorted(cluster.kinds.items())
        if not version
    ]


def _gates(seen: Seen) -> list[Finding]:
    if isinstance(seen.gates, Unseen):
        return [
            Finding(
                "GATES_UNKNOWN", WARNING, "feature gates", seen.gates.why, "Start watchcluster."
            )
        ]
    unknown = [gate.name for gate in seen.gates if gate.state == "unknown"]
    found = []
    if unknown:
        found.append(
            Finding(
                "GATES_UNKNOWN",
                WARNING,
                "feature gates",
                f"{len(unknown)} could not be read, such as {unknown[0]}.",
                "Give berth-watch its right to /metrics (deploy/rbac/watch.yaml).",
            )
        )
    if any(gate.name == CORE_GATE and gate.state == "off" for gate in seen.gates):
        found.append(
            Finding(
                "GATE_OFF",
                ERROR,
                CORE_GATE,
                "The API server has it off: no claim is stored as it was sent.",
                f"Set --feature-gates={CORE_GATE}=true on every component.",
            )
        )
    return found


def _watch(seen: Seen) -> Section:
    watch, found = seen.watch, []
    if watch.leading_until is None or watch.leading_until < seen.now - CLOCKS_APART:
        found.append(
            Finding(
                "NOBODY_WATCHES",
                ERROR,
                "watchcluster",
                "No watch process leads: what Berth shows of the cluster grows old.",
                "Start manage.py watchcluster, best twice.",
            )
        )
    for kind, trouble in sorted(watch.troubles.items()):
        found.append(
            Finding(
                "KIND_TROUBLED", ERROR, kind, trouble, "Mostly a right: see Rights, berth-watch."
            )
        )
    for kind, age in sorted(watch.ages.items()):
        if kind not in watch.troubles and (age is None or age > watch.window):
            said = "It was never listed." if age is None else f"It is {age:.0f} s old."
            found.append(
                Finding("MIRROR_STALE", ERROR, kind, said, "Look at the log of watchcluster.")
            )
    ages = [age for age in watch.ages.values() if age is not None]
    words = f"{len(watch.ages)} kinds; the oldest is {max(ages, default=0):.0f} s behind."
    return Section(Area.WATCH, words, tuple(found))


def _queue(seen: Seen) -> Section:
    queue, found = seen.queue, []
    if queue.oldest is not None and queue.oldest > LATE_SECONDS:
        found.append(
            Finding(
                "PROMISES_LATE",
                WARNING,
                queue.oldest_task,
                f"Work that was promised {queue.oldest / 60:.0f} minutes ago is not done.",
                "Is a worker running? Its log names the task; the outbox sends it again by itself.",
            )
        )
    waiting = seen.broker.waiting if isinstance(seen.broker, Broker) else 0
    if waiting > LONG_QUEUE:
        found.append(
            Finding(
                "QUEUE_LONG",
                WARNING,
                "Valkey",
                f"{waiting} messages wait for a worker.",
                "Start more workers.",
            )
        )
    return Section(Area.QUEUE, f"{queue.promises} promises, {waiting} messages wait.", tuple(found))


def _audit(seen: Seen) -> Section:
    if isinstance(seen.audit, Unseen):
        unknown = Finding(
            "AUDIT_UNKNOWN",
            WARNING,
            "API server",
            seen.audit.why,
            "Look at the API server's --audit-policy-file; take deploy/audit-policy.yaml for one.",
        )
        return Section(Area.AUDIT, "Not seen.", (unknown,))
    if not seen.audit:
        off = Finding(
            "AUDIT_OFF",
            WARNING,
            "API server",
            "It keeps no audit log: nobody will know who changed a claim or a node past Berth.",
            "Start it with --audit-policy-file=deploy/audit-policy.yaml and --audit-log-path.",
        )
        return Section(Area.AUDIT, "Off.", (off,))
    return Section(
        Area.AUDIT,
        "The API server keeps one. Whether claims and nodes are in it only its policy says.",
    )


def _disks(seen: Seen) -> Section:
    found = [
        Finding(
            "DISK_FULL",
            WARNING,
            disk.folder,
            f"{disk.free / GIB:.1f} GiB of {disk.total / GIB:.1f} are free.",
            "Make room.",
        )
        for disk in seen.disks
        if disk.free < disk.total * LITTLE_DISK
    ]
    words = "; ".join(f"{disk.folder}: {disk.free / GIB:.1f} GiB free" for disk in seen.disks)
    return Section(
        Area.DISK, f"{words}. PostgreSQL's own disk is not seen from here.", tuple(found)
    )


def _upgrade(seen: Seen) -> Section:
    version = version_of(seen.cluster.release) if isinstance(seen.cluster, Cluster) else None
    if version is None:
        return Section(Area.UPGRADE, "The release is not known.")
    found = []
    for change in changes_after(version):
        count = seen.sights.get(change.sight) if change.sight else None
        if count == 0:
            continue
        here = f" Here: {count} {change.sight}." if count else ""
        found.append(
            Finding(
                "UPGRADE_CHANGES",
                WARNING if count else INFO,
                f"v{version[0]}.{change.minor} {change.key}",
                f"{change.what}{here}",
                change.check,
            )
        )
    return Section(
        Area.UPGRADE,
        f"What v{version[0]}.{version[1] + 1} changes by itself.",
        tuple(found),
    )
