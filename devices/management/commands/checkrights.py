"""`manage.py checkrights`: drivers with too few or too many rights, by name."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from devices import cluster
from devices.cluster.gateway import ClusterError
from devices.ledger.rightslook import keep, look


class Command(BaseCommand):
    """Reads roles and bindings, which accounts of Berth may not; changes nothing in the cluster."""

    help = (
        "Looks at what drivers may do, against what publishing and telling device status needs. "
        "Exit code 0: well; 1: something is missing or too much; 2: it could not be read."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="the findings as JSON")
        parser.add_argument(
            "--kubeconfig", default="", help="look as somebody who may read roles and bindings"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        gateway = cluster.connect(options["kubeconfig"] or settings.CLUSTER_KUBECONFIG)
        try:
            drivers, findings = look(gateway)
        except ClusterError as error:
            raise CommandError(f"The cluster did not say: {error}", returncode=2) from error
        keep(drivers, findings, timezone.now())
        if options["json"]:
            found = {"drivers": drivers, "findings": [asdict(one) for one in findings]}
            self.stdout.write(json.dumps(found, indent=2))
        else:
            for one in findings:
                who = one.account or "nobody known"
                self.stdout.write(f"{one.driver or 'no driver'} ({who}) {one.word}: {one.right}")
                self.stdout.write(f"  {one.why}\n  → {one.remedy}")
            self.stdout.write(f"{len(drivers)} drivers, {len(findings)} findings.")
        sys.exit(1 if findings else 0)
