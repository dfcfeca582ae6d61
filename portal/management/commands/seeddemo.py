"""Example tenants, people, words and templates for `make demo`; doing it twice changes nothing."""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.core.management.base import BaseCommand, CommandParser
from django.db import transaction
from django.utils import timezone

from devices.models import ClaimTemplate, ClassWords, TemplateVersion
from devices.models.template import check_content
from portal.management.demo_limits import seed_limits
from portal.management.demo_pools import seed_pools
from portal.management.demo_templates import CLASS_WORDS, TEMPLATES
from tenants.access import platform_of
from tenants.models import Membership, PlatformRole, Tenant, TenantNamespace, User

TENANTS = {
    "tidewater-vision": ("Tidewater Vision", ["tidewater-train", "tidewater-eval"]),
    "basalt-genomics": ("Basalt Genomics", ["basalt-pipelines"]),
}
PEOPLE = [
    # username, name, what they are: role in a tenant or on the platform
    ("avocet", "Rosa Avocet", ("tidewater-vision", "owner")),
    ("plover", "Tim Plover", ("tidewater-vision", "member")),
    ("heron", "Iris Heron", ("tidewater-vision", "viewer")),
    ("basil", "Nadia Basil", ("basalt-genomics", "owner")),
    ("sorrel", "Jonas Sorrel", ("basalt-genomics", "member")),
    ("tansy", "Mei Tansy", ("basalt-genomics", "viewer")),
    ("olm", "Otto Olm", (None, "operator")),
    ("pike", "Petra Pike", (None, "approver")),
    ("ide", "Ada Ide", (None, "auditor")),
    ("asp", "Alva Asp", (None, "admin")),
]


class Command(BaseCommand):
    help = "Make the example tenants and people of the demo, and print who they are."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--password", default="berth-demo-2026", help="everybody's password")
        parser.add_argument("--json", action="store_true", help="print people as JSON")

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        tenants = {slug: self._tenant(slug) for slug in TENANTS}
        people = []
        password = make_password(options["password"])
        for username, name, (slug, role) in PEOPLE:
            self._person(username, name, password, tenants.get(slug or ""), role)
            where = TENANTS[slug][0] if slug else "Platform"
            people.append({"username": username, "name": name, "where": where, "role": role})
        for device_class, (display_name, words, icon) in CLASS_WORDS.items():
            ClassWords.objects.get_or_create(
                device_class=device_class,
                defaults={"display_name": display_name, "words": words, "icon": icon},
            )
        for slug, (name, words, icon, content) in TEMPLATES.items():
            self._template(slug, name, words, icon, content)
        seed_limits(tenants, timezone.now())
        seed_pools(platform_of(User.objects.get(username="olm")), timezone.now())
        if options["json"]:
            self.stdout.write(json.dumps({"people": people, "password": options["password"]}))
            return
        for person in people:
            self.stdout.write(
                f"{person['username']:<10} {person['name']:<16} {person['where']:<18} "
                f"{person['role']}"
            )
        self.stdout.write(f"password of all: {options['password']} ({settings.PUBLIC_URL})")

    def _tenant(self, slug: str) -> Tenant:
        name, namespaces = TENANTS[slug]
        tenant, _ = Tenant.objects.get_or_create(slug=slug, defaults={"name": name})
        for namespace in namespaces:
            TenantNamespace.objects.get_or_create(name=namespace, defaults={"tenant": tenant})
        return tenant

    def _person(
        self, username: str, name: str, password: str, tenant: Tenant | None, role: str
    ) -> None:
        user, _ = User.objects.get_or_create(
            username=username,
            defaults={
                "display_name": name,
                "email": f"{username}@example.com",
                "password": password,
            },
        )
        if tenant:
            Membership.objects.get_or_create(tenant=tenant, user=user, defaults={"role": role})
        else:
            PlatformRole.objects.get_or_create(user=user, role=role)

    def _template(self, slug: str, name: str, words: str, icon: str, content: Any) -> None:
        template, _ = ClaimTemplate.objects.get_or_create(
            slug=slug, defaults={"name": name, "words": words, "icon": icon}
        )
        check_content(content)
        TemplateVersion.objects.get_or_create(
            template=template,
            number=1,
            defaults={"state": TemplateVersion.State.APPROVED, "content": content},
        )
