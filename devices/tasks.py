"""Celery's way into floor 2: tasks take ids, may run twice, and keep nothing to themselves."""

from __future__ import annotations

from datetime import timedelta

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from devices import cluster, forecast, freezes, history, offers, reconcile, tenancy
from devices.cluster.gateway import ClusterError
from devices.models import Claim
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
        outbox.hint(reconcile.RECONCILE, public_id)


@shared_task(autoretry_for=(ClusterError,), retry_backoff=2, retry_backoff_max=60, max_retries=3)
def turn_tenant(slug: str) -> None:
    """One turn of one tenant: its namespaces carry what it may have."""
    tenancy.turn(slug, gateway=cluster.connect(settings.CLUSTER_KUBECONFIG), now=timezone.now())


@shared_task(acks_late=False)
def turn_policy() -> None:
    """Keeps the parameter of the admission policies."""
    tenancy.turn_policy(gateway=cluster.connect(settings.CLUSTER_KUBECONFIG), now=timezone.now())


@shared_task
def sweep_tenants() -> None:
    """Wakes tenants that no turn looked at for a while: news of the cluster may have been lost."""
    for slug in tenancy.unseen(timezone.now(), older_than=LOOK_AGAIN):
        outbox.hint(TURN_TENANT, slug)


@shared_task(acks_late=False)
def expire_freezes() -> None:
    """Ends freezes whose time is over; what they held is sent."""
    freezes.expire(timezone.now())


@shared_task(acks_late=False)
def count_offers() -> None:
    """Counts again what each class has to offer, from the mirror."""
    offers.count(timezone.now())


@shared_task(acks_late=False)
def judge_forecasts() -> None:
    """Compares what was foretold with what came."""
    forecast.judge_open(timezone.now())


@shared_task(acks_late=False)
def forget_stage_times() -> None:
    """Drops stage times that are too old to teach anything."""
    history.forget(timezone.now())
