"""Celery's way into floor 3."""

from __future__ import annotations

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from devices import cluster
from devices.cluster.gateway import ClusterError
from migrationplan.drills import running
from migrationplan.gating import asking
from migrationplan.makingroom import evicting
from migrationplan.moving import reconcile
from migrationplan.plans import reconcile as plan_turns
from portal.outbox import lines as outbox


@shared_task(autoretry_for=(ClusterError,), retry_backoff=2, retry_backoff_max=60, max_retries=3)
def turn_move(public_id: str) -> None:
    """One turn of one move; what it waits for is looked at again by the sweep."""
    gateway = cluster.connect(settings.CLUSTER_KUBECONFIG)
    while reconcile.turn(public_id, gateway=gateway, now=timezone.now()):
        if public_id not in reconcile.due(timezone.now()):
            break


@shared_task(acks_late=False)
def sweep_moves() -> None:
    """Wakes the moves whose time has come."""
    for public_id in reconcile.due(timezone.now()):
        outbox.hint(reconcile.TURN, public_id)


@shared_task(autoretry_for=(ClusterError,), retry_backoff=2, retry_backoff_max=60, max_retries=3)
def turn_wave(public_id: str) -> None:
    """Turns of one wave while it moves; what it waits for is looked at again by the sweep."""
    gateway = cluster.connect(settings.CLUSTER_KUBECONFIG)
    while plan_turns.turn(public_id, gateway=gateway, now=timezone.now()):
        pass


@shared_task(acks_late=False)
def sweep_waves() -> None:
    """Wakes the waves whose time has come."""
    for public_id in plan_turns.due(timezone.now()):
        outbox.hint(plan_turns.TURN, public_id)


@shared_task(autoretry_for=(ClusterError,), retry_backoff=2, retry_backoff_max=60, max_retries=3)
def turn_drill(public_id: str) -> None:
    """One look of one drill; the next one comes with the sweep."""
    running.turn(
        public_id,
        connect=lambda: cluster.connect(settings.CLUSTER_KUBECONFIG),
        now=timezone.now(),
    )


@shared_task(acks_late=False)
def sweep_drills() -> None:
    """Wakes the drills whose time has come."""
    for public_id in running.due(timezone.now()):
        outbox.hint(running.TURN, public_id)


@shared_task(autoretry_for=(ClusterError,), retry_backoff=2, retry_backoff_max=60, max_retries=3)
def turn_room(public_id: str) -> None:
    """One turn of making room; what it waits for is looked at again by the sweep."""
    gateway = cluster.connect(settings.CLUSTER_KUBECONFIG)
    evicting.turn(public_id, gateway=gateway, now=timezone.now())


@shared_task(acks_late=False)
def sweep_rooms() -> None:
    """Wakes those that make room and whose time has come."""
    for public_id in evicting.due(timezone.now()):
        outbox.hint(evicting.TURN, public_id)


@shared_task(acks_late=False)
def read_gates_of_pool(slug: str) -> None:
    """Reads every gate of a node pool because somebody asked for it."""
    asking.read_pool(slug, timezone.now())
