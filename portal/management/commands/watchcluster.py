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
from devices.mirror.store import Changed
from devices.models import Observed
from devices.reconcile import RECONCILE
from devices.watching import Watch, watch
from portal import news
from portal.outbox import lines as outbox

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
    wake(_claims_of(changes))
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
    "DeviceClass": wake_counting,
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


def count() -> None:
    """Asks for the figures to be counted: the first change of a second does, for all that follow.

    The task starts when that second is over, so that what it counts has all of them.
    """
    try:
        if cache.add("counting", 1, timeout=COUNT_SECONDS):
            current_app.send_task(COUNT, countdown=COUNT_SECONDS, retry=False)
    except (RedisError, OperationalError) as error:
        log.info("Not counted: %s", error)
