"""Celery's way into floor 2: tasks take ids, may run twice, and keep nothing to themselves."""

from __future__ import annotations

from datetime import timedelta

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from devices import cluster
from devices.asks import endings, history, line, reconcile, signals
from devices.authoring import dryruns, reviews
from devices.catalogue import holdings, offers
from devices.cluster.gateway import ClusterError
from devices.doctor import runs
from devices.dra.names import PROBE_ACCOUNT
from devices.fleet import driftbook, isolation, isolationturn, leakboard, ownershipbook, poolmarks
from devices.fleet.inventory import adopt
from devices.fleet.isolationwishes import TURN as TURN_ISOLATION
from devices.forecasts import forecast
from devices.forecasts.warm import fresh
from devices.ledger import book, rollouts
from devices.ledger import closures as ledger_closures
from devices.models import Claim
from devices.routing import proofs, rerouting
from devices.tenancy import closures, freezes, freezeturn, turns
from portal.outbox import lines as outbox
from tenants.allowance import TURN_TENANT

LOOK_AGAIN = timedelta(minutes=10)


@shared_task(autoretry_for=(ClusterError,), retry_backoff=2, retry_backoff_max=60, max_retries=3)
def reconcile_claim(public_id: str) -> None:
    """One turn of one ask. After the last retry the outbox line, which stays, brings it back."""
    if not Claim.objects.filter(public_id=public_id).exists():
        return
    reconcile.turn(
        public_id, gateway=cluster.connect(settings.CLUSTER_KUBECONFIG), now=timezone.now()
    )


@shared_task
def sweep_claims() -> None:
    """Wakes every open ask that nobody looked at for ten minutes."""
    for public_id in reconcile.unseen(timezone.now(), older_than=LOOK_AGAIN):
        outbox.hint(reconcile.RECONCILE, public_id, last=True)


@shared_task(acks_late=False)
def end_claims() -> None:
    """Releases claims whose time is over, and tells of those that end soon."""
    now = timezone.now()
    endings.expire_due(now)
    endings.warn_due(now)


@shared_task(autoretry_for=(ClusterError,), retry_backoff=2, retry_backoff_max=60, max_retries=3)
def turn_tenant(slug: str) -> None:
    """One turn of one tenant: its namespaces carry what it may have."""
    turns.turn(slug, gateway=cluster.connect(settings.CLUSTER_KUBECONFIG), now=timezone.now())


@shared_task(acks_late=False)
def turn_policy() -> None:
    """Keeps the parameter of the admission policies."""
    turns.turn_policy(gateway=cluster.connect(settings.CLUSTER_KUBECONFIG), now=timezone.now())


@shared_task
def sweep_tenants() -> None:
    """Wakes tenants that no turn looked at for a while: news of the cluster may have been lost."""
    for slug in turns.unseen(timezone.now(), older_than=LOOK_AGAIN):
        outbox.hint(TURN_TENANT, slug)


@shared_task
def begin_closing(closure_id: str) -> None:
    """Begins the closing that an approval said yes to."""
    closures.carry_out(int(closure_id), now=timezone.now())


@shared_task(acks_late=False)
def sweep_closings() -> None:
    """Wakes tenants that are being closed, and says which closings are late."""
    now = timezone.now()
    for slug in closures.slugs_under_way():
        outbox.hint(TURN_TENANT, slug)
    closures.alert_late(now)


@shared_task(acks_late=False)
def expire_freezes() -> None:
    """Ends freezes whose time is over; what they held is sent."""
    freezes.expire(timezone.now())


@shared_task(autoretry_for=(ClusterError,), retry_backoff=2, retry_backoff_max=60, max_retries=3)
def turn_freeze(public_id: str) -> None:
    """One turn of one freeze of a node pool, a driver or of driver changes."""
    freezeturn.turn(
        public_id, gateway=cluster.connect(settings.CLUSTER_KUBECONFIG), now=timezone.now()
    )


@shared_task
def sweep_freezes() -> None:
    """Wakes freezes of places that are under way, and those that stand and are looked at again."""
    for public_id in freezeturn.due(timezone.now()):
        outbox.hint(freezes.TURN, public_id)


@shared_task
def publish_template(version_id: str) -> None:
    """Offers a version that enough people approved; the outbox line brings it back until it did."""
    reviews.publish(int(version_id), now=timezone.now())


@shared_task(acks_late=False)
def answer_dry_run(public_id: str) -> None:
    """Puts what somebody wants to try to the API server; asking again is their choice."""
    dryruns.answer(
        public_id, gateway=cluster.connect(settings.CLUSTER_KUBECONFIG), now=timezone.now()
    )


@shared_task(acks_late=False)
def forget_dry_runs() -> None:
    """Drops dry runs that nobody looks at any more."""
    dryruns.forget(timezone.now())


@shared_task
def answer_proof(public_id: str) -> None:
    """Puts what somebody translated to the API server, as the account that can write nothing."""
    gateway = cluster.connect(settings.CLUSTER_KUBECONFIG, acting_as=PROBE_ACCOUNT)
    proofs.answer(public_id, gateway=gateway, now=timezone.now())


@shared_task(acks_late=False)
def forget_proofs() -> None:
    """Drops proofs that nobody looks at any more."""
    proofs.forget(timezone.now())


@shared_task(acks_late=False)
def sweep_routes() -> None:
    """Begins route rules whose time has come, and ends those whose time is over."""
    rerouting.sweep(timezone.now())


@shared_task(acks_late=False)
def scan_leaks() -> None:
    """Looks for devices that are held and should not be; changes nothing in the cluster."""
    seen = fresh()
    if seen is not None:
        leakboard.scan(seen.now, timezone.now())


@shared_task(acks_late=False)
def write_ledger() -> None:
    """Writes into the node ledger what Pods and their devices take of nodes now."""
    seen = fresh()
    if seen is not None:
        book.scan(seen.now, seen.as_of, timezone.now())
        rollouts.turn(seen.now, timezone.now())


@shared_task(autoretry_for=(ClusterError,), retry_backoff=2, retry_backoff_max=60, max_retries=3)
def close_by_ledger() -> None:
    """Closes devices whose node's ledger cannot be relied on, where that is the policy."""
    seen = fresh()
    if seen is not None:
        gateway = cluster.connect(settings.CLUSTER_KUBECONFIG)
        ledger_closures.turn(seen.now, gateway=gateway, now=timezone.now())


@shared_task(acks_late=False)
def scan_ownership() -> None:
    """Writes into the book who gives out which devices now."""
    seen = fresh()
    if seen is not None:
        ownershipbook.scan(seen.now, timezone.now())


@shared_task(autoretry_for=(ClusterError,), retry_backoff=2, retry_backoff_max=60, max_retries=3)
def clean_leak(public_id: str) -> None:
    """Carries out what a person wished; the outbox line brings it back until there is an answer."""
    leakboard.turn(
        public_id, gateway=cluster.connect(settings.CLUSTER_KUBECONFIG), now=timezone.now()
    )


@shared_task(acks_late=False)
def look_with_doctor(public_id: str = "") -> None:
    """Looks at all that Berth stands on; without an id it is the clock that asks."""
    path = settings.CLUSTER_KUBECONFIG
    runs.run(
        public_id,
        gateway=cluster.connect(path),
        act_as=lambda user: cluster.connect(path, acting_as=user),
        now=timezone.now(),
    )


@shared_task(acks_late=False)
def count_offers() -> None:
    """Counts again what each class has to offer, and writes who holds which device now."""
    now = timezone.now()
    offers.count(now)
    seen = fresh()
    if seen is not None:
        holdings.record(seen.now, now)


@shared_task(acks_late=False)
def judge_forecasts() -> None:
    """Compares what was foretold with what came."""
    forecast.judge_open(timezone.now())


@shared_task(acks_late=False)
def forget_stage_times() -> None:
    """Drops stage times, signals and holdings that are too old to teach anything."""
    history.forget(timezone.now())
    signals.forget(timezone.now())
    holdings.forget(timezone.now())


@shared_task(acks_late=False)
def scan_preparations() -> None:
    """Looks where Pods' devices cannot be got ready; what is to be closed is proposed."""
    seen = fresh()
    if seen is not None:
        isolation.scan(seen.now, timezone.now())


@shared_task(autoretry_for=(ClusterError,), retry_backoff=2, retry_backoff_max=60, max_retries=3)
def turn_isolation(public_id: str) -> None:
    """One turn of one isolation."""
    isolationturn.turn(
        public_id, gateway=cluster.connect(settings.CLUSTER_KUBECONFIG), now=timezone.now()
    )


@shared_task
def sweep_isolations() -> None:
    """Wakes isolations that wait for the cluster, and those that stand and are looked at again."""
    for public_id in isolationturn.due(timezone.now()):
        outbox.hint(TURN_ISOLATION, public_id)


@shared_task(acks_late=False)
def scan_drift() -> None:
    """Compares what nodes show with what they should have."""
    seen = fresh()
    if seen is not None:
        driftbook.scan(seen.now, timezone.now())
        poolmarks.scan(seen.now, timezone.now())


@shared_task(acks_late=False)
def send_held() -> None:
    """Wakes asks that wait for something which is over, in the order of asking."""
    for public_id in line.due(timezone.now()):
        outbox.hint(reconcile.RECONCILE, public_id)


@shared_task
def adopt_inventory(inventory_id: str) -> None:
    """Puts an approved inventory into force; the outbox line brings it back until it is."""
    adopt(int(inventory_id), now=timezone.now())
