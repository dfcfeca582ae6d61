"""One search over everything that somebody may see: pages, claims, templates, hardware, people.

Each kind of thing asks for itself with the viewer's own rights, in a constant number of queries,
whatever is looked for. What a viewer may not see is not found; that it exists is not said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from django.db.models import Q, QuerySet
from django.urls import reverse

from devices.authoring.shown import shown_to
from devices.catalogue import browsing
from devices.catalogue.findingpages import PAGES
from devices.models import Claim, ClaimTemplate, Offer
from devices.tenancy.spending import class_names
from portal.approvals.lists import visible_to
from portal.approvals.models import Approval
from portal.ui.statuses import status_of
from tenants.access import Access, PlatformAccess, closed_tenants_of, decider_of
from tenants.grants import visible
from tenants.models import Tenant, TenantNamespace, User
from tenants.policy import PlatformAct

#: Of each kind so many are shown among others, and so many where it alone is asked for.
FEW: Final = 5
MANY: Final = 50
LONGEST: Final = 200


@dataclass(frozen=True, slots=True)
class Finder:
    """Who looks, and from where: `here` is the tenant of the page, `scopes` are all of theirs."""

    user: User
    scopes: Sequence[Access]
    platform: PlatformAccess
    here: Access | None
    now: datetime

    @property
    def sees_platform(self) -> bool:
        return self.platform.may(PlatformAct.SEE)

    @property
    def tenants(self) -> list[Tenant]:
        return [scope.tenant for scope in self.scopes]


@dataclass(frozen=True, slots=True)
class Hit:
    """One thing found. `sub` says what tells it apart; `mono` is for names of the cluster."""

    kind: str
    title: str
    address: str
    icon: str
    sub: str = ""
    mono: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """What was found of one kind; `more` is the search that shows the rest, where there is any."""

    kind: str
    word: str
    hits: tuple[Hit, ...]
    more: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A search as it was typed: `in:claim pretrain` looks in one kind; `strange` is no kind."""

    kind: str = ""
    words: tuple[str, ...] = ()
    strange: str = ""

    @property
    def text(self) -> str:
        return " ".join(self.words)


@dataclass(frozen=True, slots=True)
class Source:
    """A kind of things: its word for `in:`, its heading, and who finds them."""

    kind: str
    word: str
    find: Callable[[Finder, Asked, int], list[Hit]] = field(repr=False)


def asked_for(text: str) -> Asked:
    """Reads what somebody typed."""
    kind, words, strange = "", [], ""
    for word in text.replace("\x00", "")[:LONGEST].lower().split():
        name = word.removeprefix("in:")
        if name == word:
            words.append(word)
        elif name in KINDS:
            kind = name
        else:
            strange = name
    return Asked(kind, tuple(words), strange)


def find(finder: Finder, asked: Asked) -> list[Group]:
    """What fits, by kind, in the order of `SOURCES`; nothing where it is asked for no kind.

    Without words: the pages, and the newest claims of the viewer's own.
    """
    if asked.strange:
        return []
    most = MANY if asked.kind else FEW
    groups = []
    for source in SOURCES:
        if asked.kind not in {"", source.kind}:
            continue
        if not asked.words and not asked.kind and source.kind not in AT_FIRST:
            continue
        hits = source.find(finder, asked, most + 1)
        if hits:
            more = "" if len(hits) <= most or asked.kind else f"in:{source.kind} {asked.text}"
            groups.append(Group(source.kind, source.word, tuple(hits[:most]), more))
    return groups


def _fits(words: Iterable[str], *texts: str) -> bool:
    hay = " ".join(texts).lower()
    return all(word in hay for word in words)


def _every(words: Iterable[str], *columns: str) -> Q:
    """Each word stands in one of the columns."""
    every = Q()
    for word in words:
        either = Q()
        for column in columns:
            either |= Q(**{f"{column}__icontains": word})
        every &= either
    return every


def _pages(finder: Finder, asked: Asked, most: int) -> list[Hit]:
    hits = []
    for page in PAGES:
        if not page.open_to(finder.here, finder.platform):
            continue
        if _fits(asked.words, page.word, page.also):
            args = [finder.here.tenant.slug] if page.of_tenant and finder.here else []
            sub = finder.here.tenant.name if page.of_tenant and finder.here else page.place
            hits.append(Hit("page", page.word, reverse(page.view, args=args), page.icon, sub))
    return hits[:most]


def _claims(finder: Finder, asked: Asked, most: int) -> list[Hit]:
    rows: QuerySet[Claim] = Claim.objects.all()
    if not finder.sees_platform:
        rows = rows.filter(tenant__in=finder.tenants)
    if not asked.words:
        rows = rows.filter(asked_by=finder.user.person)
    named = Q()
    for word in asked.words:
        named &= Q(name__contains=word) | Q(public_id=word)
    own = {tenant.pk for tenant in finder.tenants}
    found = rows.filter(named).select_related("tenant", "version__template").order_by("-pk")
    return [
        Hit(
            "claim",
            claim.name,
            reverse("claim", args=[claim.tenant.slug, claim.public_id])
            if claim.tenant_id in own
            else reverse("platform-claim", args=[claim.public_id]),
            "claim",
            f"{status_of(claim.state).word}, {claim.tenant.name}",
            mono=True,
        )
        for claim in found[:most]
    ]


def _templates(finder: Finder, asked: Asked, most: int) -> list[Hit]:
    if finder.here is not None:
        slug = finder.here.tenant.slug
        return [
            Hit(
                "template",
                version.template.name,
                reverse("request-new", args=[slug, version.template.slug]),
                "template",
                "Ask for it",
            )
            for version in shown_to(finder.here.tenant, finder.now)
            if _fits(asked.words, version.template.name, version.template.slug)
        ][:most]
    if not finder.sees_platform:
        return []
    rows = ClaimTemplate.objects.filter(_every(asked.words, "name", "slug")).order_by("name")
    return [
        Hit("template", row.name, reverse("template", args=[row.slug]), "template", row.slug)
        for row in rows[:most]
    ]


def _classes(finder: Finder, asked: Asked, most: int) -> list[Hit]:
    viewer = _browser(finder)
    if viewer is None:
        return []
    names = class_names()
    known = Offer.objects.order_by("device_class").values_list("device_class", flat=True)
    return [
        Hit("class", names.get(name, name), viewer.url("class", name), "device", name)
        for name in known
        if _fits(asked.words, name, names.get(name, ""))
    ][:most]


def _hardware(finder: Finder, asked: Asked, most: int, kind: str) -> list[Hit]:
    viewer, here = _browser(finder), browsing.look()
    if viewer is None or here is None:
        return []
    if kind == "node":
        return [
            Hit("node", name, viewer.url("node", name), "gpu", mono=True)
            for name in browsing.nodes_listed(here, text=asked.text)[:most]
        ]
    return [
        Hit("pool", one.name, viewer.url("pool", one.driver, one.name), "pool", one.driver, True)
        for one in browsing.pools_listed(here, text=asked.text)[:most]
    ]


def _pools(finder: Finder, asked: Asked, most: int) -> list[Hit]:
    return _hardware(finder, asked, most, "pool")


def _nodes(finder: Finder, asked: Asked, most: int) -> list[Hit]:
    return _hardware(finder, asked, most, "node")


def _tenants(finder: Finder, asked: Asked, most: int) -> list[Hit]:
    own = [tenant for tenant in finder.tenants if _fits(asked.words, tenant.name, tenant.slug)]
    hits = [
        Hit("tenant", one.name, reverse("tenant-home", args=[one.slug]), "home", "Yours")
        for one in own
    ]
    hits += [
        Hit("tenant", one.name, reverse("own-receipt", args=[one.slug]), "audit", "Its receipt")
        for one in closed_tenants_of(finder.user)
        if _fits(asked.words, one.name, one.slug)
    ]
    if finder.sees_platform:
        rows = Tenant.objects.filter(_every(asked.words, "name", "slug")).order_by("name")
        hits += [
            Hit("tenant", row.name, reverse("platform-tenant", args=[row.slug]), "people", row.slug)
            for row in rows[:most]
        ]
    return hits[:most]


def _namespaces(finder: Finder, asked: Asked, most: int) -> list[Hit]:
    rows = TenantNamespace.objects.select_related("tenant").filter(_every(asked.words, "name"))
    if not finder.sees_platform:
        rows = rows.filter(tenant__in=finder.tenants)
    own = {tenant.pk for tenant in finder.tenants}
    return [
        Hit(
            "namespace",
            row.name,
            f"{reverse('claims', args=[row.tenant.slug])}?namespace={row.name}"
            if row.tenant_id in own
            else reverse("platform-tenant", args=[row.tenant.slug]),
            "pods",
            row.tenant.name,
            mono=True,
        )
        for row in rows.order_by("name")[:most]
    ]


def _people(finder: Finder, asked: Asked, most: int) -> list[Hit]:
    """Members of the viewer's own tenants, as the pages of members show them; for people of the
    platform everybody with an account.
    """
    if finder.sees_platform:
        everybody = User.objects.filter(_every(asked.words, "username", "display_name"))
        return [
            Hit(
                "person",
                one.words,
                reverse("platform-person", args=[one.username]),
                "people",
                one.username,
            )
            for one in everybody.order_by("username")[:most]
        ]
    rows = User.objects.filter(
        _every(asked.words, "username", "display_name"), memberships__tenant__in=finder.tenants
    )
    slugs = {tenant.pk: tenant for tenant in finder.tenants}
    found = rows.values_list("username", "display_name", "memberships__tenant").order_by("username")
    return [
        Hit(
            "person",
            display or username,
            reverse("members", args=[slugs[tenant].slug]),
            "people",
            f"{username}, {slugs[tenant].name}",
        )
        for username, display, tenant in found[: most * 2]
        if tenant in slugs
    ][:most]


def _approvals(finder: Finder, asked: Asked, most: int) -> list[Hit]:
    rows: QuerySet[Approval] = visible_to(decider_of(finder.user, finder.now))
    found = rows.filter(_every(asked.words, "title", "subject"))
    return [
        Hit("approval", row.title, reverse("approval", args=[row.number]), "stamp", row.number)
        for row in found[:most]
    ]


def _grants(finder: Finder, asked: Asked, most: int) -> list[Hit]:
    if finder.here is None:
        return []
    tenant = finder.here.tenant
    rows = visible(tenant).filter(_every(asked.words, "template", "namespace", "public_id"))
    return [
        Hit(
            "grant",
            f"{row.template} for {row.namespace}",
            reverse("grant", args=[tenant.slug, row.public_id]),
            "grant",
            status_of(row.state).word,
        )
        for row in rows[:most]
    ]


def _browser(finder: Finder) -> browsing.Viewer | None:
    """As whom the catalogue's pages would show hardware."""
    if finder.here is not None:
        return browsing.Viewer(access=finder.here)
    return browsing.of_platform(finder.platform) if finder.sees_platform else None


SOURCES: Final = (
    Source("page", "Pages", _pages),
    Source("claim", "Claims", _claims),
    Source("template", "Templates", _templates),
    Source("class", "Classes", _classes),
    Source("pool", "Pools of slices", _pools),
    Source("node", "Nodes", _nodes),
    Source("tenant", "Tenants", _tenants),
    Source("namespace", "Namespaces", _namespaces),
    Source("person", "People", _people),
    Source("grant", "Grants", _grants),
    Source("approval", "Approvals", _approvals),
)
KINDS: Final = tuple(source.kind for source in SOURCES)
AT_FIRST: Final = frozenset({"page", "claim"})
