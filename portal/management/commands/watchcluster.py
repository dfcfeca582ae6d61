"""The watch process: keeps the mirror equal to the cluster, and wakes whom a change concerns.

On the roof because its table names tasks of several floors; `devices.watching` knows none of them.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Sequence
from types import FrameType
from typing import Any

from celery import current_app
from django.conf import settings
from django.core.cache import cache
from django.core.management.base import BaseCommand
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from devices import cluster
from devices.asks.reconcile import RECONCILE
from devices.dra.objects import Shape
from devices.mirror.store import Changed
from devices.models import Claim, Observed
from devices.watching import Watch, watch
from portal import news, scraping
from portal.outbox import lines as outbox
from tenants.allowance import TURN_TENANT
from tenants.models import Tenant, TenantNamespace

POLICY = "devices.tasks.turn_policy"
# A tenant's turn after the first of a batch of changes, and one more for those that came meanwhile.
TURN_SECONDS = 1
COUNT = "devices.tasks.count_offers"
COUNT_SECONDS = 1
# Kinds that a request's public id can be found on.
CARRIERS = ("ResourceClaim", "ResourceClaimTemplate", "Pod")

log = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Follows the cluster into the mirror. Run two: one leads, the other takes over."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="list everything once and leave")

    def handle(self, *args: Any, **options: Any) -> None:
        stop = threading.Event()

        def leave(number: int, frame: FrameType | None) -> None:
            stop.set()

        signal.signal(signal.SIGTERM, leave)
        signal.signal(signal.SIGINT, leave)
        scraping.listen()
        if settings.TRACES_ENDPOINT:
            from portal import tracing

            tracing.start("watch")
        work = Watch(cluster.connect(settings.CLUSTER_KUBECONFIG), wake=WAKE, turned=turned)
        if not watch(work, stop, once=options["once"]):
            sys.exit(1)


def turned() -> None:
    """The cluster came or went, or all of it was listed: the frame of every page says so."""
    news.publish(["cluster"])
    count()


def wake_claims(changes: Sequence[Changed]) -> None:
    """Claims and templates carry the public id of the request they are for."""
    wake(change.claim for change in changes)
    count()


def wake_claims_of_pods(changes: Sequence[Changed]) -> None:
    """A Pod carries the id itself, or names claims and templates that do."""
    public_ids = {public_id for public_id in _claims_of(changes) if public_id}
    wake(public_ids)
    # A claim that only so many Pods may share opens and closes with them.
    shared = Claim.objects.filter(
        public_id__in=public_ids, shape=Shape.CLAIM, version__content__has_key="pods"
    )
    if public_ids:
        wake_tenants(shared.values_list("tenant__slug", flat=True))
    # A tenant that is being closed waits for its Pods, whatever these use.
    closing = Tenant.objects.filter(
        state=Tenant.State.CLOSING,
        namespaces__name__in={change.namespace for change in changes},
        namespaces__left_at=None,
    )
    wake_tenants(closing.values_list("slug", flat=True))
    count()


def wake_owners_of_namespaces(changes: Sequence[Changed]) -> None:
    """Labels, annotations or a quota are otherwise: the tenant's turn puts right what is wrong.

    By name, because a label that was taken off names nobody.
    """
    names = {change.namespace or change.name for change in changes}
    places = TenantNamespace.objects.filter(name__in=names)
    wake_tenants(places.values_list("tenant__slug", flat=True))


def wake_for_classes(changes: Sequence[Changed]) -> None:
    """The names that lead to devices may be others now, in the policies and in every namespace."""
    try:
        current_app.send_task(POLICY, retry=False)
    except OperationalError as error:
        log.info("The policies' parameter is kept by the sweep: %s", error)
    open_tenants = Tenant.objects.exclude(state=Tenant.State.CLOSED)
    wake_tenants(open_tenants.values_list("slug", flat=True))
    count()


def wake_claims_of_events(changes: Sequence[Changed]) -> None:
    """What is said about a Pod or a claim concerns the requests behind it."""
    about = {change.owner_uid for change in changes}
    wake(_claims_of(Observed.objects.filter(pk__in=about, kind__in=CARRIERS).defer("raw")))


def _claims_of(things: Iterable[Changed | Observed]) -> Iterator[str]:
    """Public ids that these carry, or that the claims and templates carry which they use."""
    used: set[tuple[str, str]] = set()
    for thing in things:
        yield thing.claim
        used.update((thing.namespace, name) for name in thing.uses)
    if used:
        # One question for all: few objects carry an id, and names may repeat across namespaces.
        found = Observed.objects.exclude(claim="").filter(
            kind__in=CARRIERS, name__in={name for _, name in used}
        )
        for namespace, name, claim in found.values_list("namespace", "name", "claim"):
            if (namespace, name) in used:
                yield claim


def wake_counting(changes: Sequence[Changed]) -> None:
    count()


WAKE = {
    "ResourceClaim": wake_claims,
    "ResourceClaimTemplate": wake_claims,
    "Pod": wake_claims_of_pods,
    "Event": wake_claims_of_events,
    "Namespace": wake_owners_of_namespaces,
    "ResourceQuota": wake_owners_of_namespaces,
    "DeviceClass": wake_for_classes,
    "ResourceSlice": wake_counting,
    "DeviceTaintRule": wake_counting,
    "Node": wake_counting,
}


def wake(public_ids: Iterable[str]) -> None:
    """Hurries the turns of these requests; where the broker is away a sweep does it later."""
    for public_id in {public_id for public_id in public_ids if public_id}:
        if not outbox.hint(RECONCILE, public_id):
            log.info("The broker is away; %s is looked at by the sweep", public_id)
            return


def wake_tenants(slugs: Iterable[str]) -> None:
    """Hurries turns of tenants: at once, and once more a second later for what comes meanwhile."""
    try:
        for slug in set(slugs):
            if cache.add(f"turn-{slug}", 1, timeout=TURN_SECONDS):
                current_app.send_task(TURN_TENANT, args=[slug], retry=False)
            elif cache.add(f"turn-again-{slug}", 1, timeout=TURN_SECONDS):
                current_app.send_task(TURN_TENANT, args=[slug], countdown=TURN_SECONDS, retry=False)
    except (RedisError, OperationalError) as error:
        log.info("Tenants are looked at by the sweep: %s", error)


def count() -> None:
    """Asks for the figures to be counted: the first change of a second does, for all that follow.

    The task starts when that second is over, so that what it counts has all of them.
    """
    try:
        if cache.add("counting", 1, timeout=COUNT_SECONDS):
            current_app.send_task(COUNT, countdown=COUNT_SECONDS, retry=False)
    except (RedisError, OperationalError) as error:
        log.info("Not counted: %s", error)
