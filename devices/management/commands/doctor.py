"""Looks at everything that Berth stands on; says what is wrong, how grave it is, and what to do."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import DatabaseError
from django.utils import timezone

from devices import cluster
from devices.doctor.checks import examine
from devices.doctor.findings import Report, Severity
from devices.doctor.look import look

#: PostgreSQL is away, so that there is nothing to tell.
NOTHING_TO_TELL = 3


class Command(BaseCommand):
    help = (
        "Looks at database, broker, cluster, rights, policies, clocks, certificates and disks. "
        "Exit code 0: well; 1: warnings; 2: errors; 3: PostgreSQL does not answer."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="the sections as JSON")
        parser.add_argument(
            "--kubeconfig",
            default="",
            help="look as somebody who may impersonate Berth's accounts and read its policies",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        path = options["kubeconfig"] or settings.CLUSTER_KUBECONFIG
        try:
            seen = look(
                cluster.connect(path),
                act_as=lambda user: cluster.connect(path, acting_as=user),
                now=timezone.now(),
            )
        except DatabaseError as error:
            self.stderr.write(
                f"PostgreSQL does not answer: {error}".strip()
                + "\nLook at DATABASE_URL, and whether the server runs."
            )
            sys.exit(NOTHING_TO_TELL)
        report = examine(seen)
        if options["json"]:
            self.stdout.write(json.dumps(report.as_json(), indent=2))
        else:
            self._tell(report)
        sys.exit(report.exit_code)

    def _tell(self, report: Report) -> None:
        style = {
            Severity.ERROR: self.style.ERROR,
            Severity.WARNING: self.style.WARNING,
            Severity.INFO: self.style.HTTP_INFO,
        }
        for section in report.sections:
            self.stdout.write(f"{section.area}: {section.seen}")
            for one in section.findings:
                word = style[one.severity](f"{one.severity:<7}")
                self.stdout.write(f"  {word} {one.code}  {one.subject}: {one.sentence}")
                self.stdout.write(f"          → {one.remedy}")
        counts = ", ".join(f"{report.count(one)} {one}" for one in Severity)
        self.stdout.write(f"{counts}.")
