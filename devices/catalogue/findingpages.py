"""The pages that one can go to by name, and who may open each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tenants.access import Access, PlatformAccess
from tenants.policy import Act, PlatformAct

Right = Callable[[PlatformAccess], bool]


@dataclass(frozen=True, slots=True)
class Page:
    """A page by its view's name. `also` are words by which people look for it; `act` is what one
    must be allowed in the tenant, `platform` what on the platform; neither: everybody.
    """

    word: str
    view: str
    icon: str
    also: str = ""
    act: Act | None = None
    platform: PlatformAct | None = None

    @property
    def of_tenant(self) -> bool:
        return self.act is not None

    @property
    def place(self) -> str:
        """Where it belongs, for what is no tenant's."""
        return "Platform" if self.platform is not None else "You"

    def open_to(self, here: Access | None, platform: PlatformAccess) -> bool:
        """Whether this viewer gets the page, from within the tenant `here`."""
        if self.act is not None:
            return here is not None and here.may(self.act)
        return self.platform is None or platform.may(self.platform)


_SEE, _VIEW = PlatformAct.SEE, Act.VIEW

PAGES: Final = (
    Page("Home", "tenant-home", "home", "start overview", _VIEW),
    Page("Catalogue", "catalogue", "grid", "ask devices classes offers gpu new", _VIEW),
    Page("Claims", "claims", "claim", "list mine pending", _VIEW),
    Page("Translate", "translation", "updown", "manifest yaml nvidia.com/gpu convert", _VIEW),
    Page("Limits", "limits", "ledger", "quota budget", _VIEW),
    Page("Grants", "grants", "grant", "share lend other namespace", _VIEW),
    Page("Offer a grant", "grant-offer", "grant", "share lend new", _VIEW),
    Page("Members", "members", "people", "people invite roles", _VIEW),
    Page("Audit", "tenant-audit", "audit", "log history who did", Act.READ_AUDIT),
    Page("Pools", "pools", "pool", "slices drivers", _VIEW),
    Page("Nodes", "nodes", "gpu", "machines", _VIEW),
    Page("Capabilities", "capabilities", "caps", "features cluster beta alpha", _VIEW),
    Page("How allocation works", "how-allocation-works", "learn", "help dra explain", _VIEW),
    Page("Capacity", "platform-catalogue", "pool", "classes offers", platform=_SEE),
    Page("Claims of all tenants", "platform-claims", "claim", "list pending", platform=_SEE),
    Page("Tenants", "platform-tenants", "pool", "namespaces closing", platform=_SEE),
    Page("Templates", "templates", "template", "author versions review", platform=_SEE),
    Page("Freezes", "freezes", "freeze", "stop maintenance", platform=_SEE),
    Page("Limits of tenants", "platform-limits", "ledger", "quota", platform=_SEE),
    Page("People", "platform-people", "people", "accounts users", platform=_SEE),
    Page("Capabilities of the cluster", "platform-capabilities", "caps", "gates", platform=_SEE),
    Page("Roles", "platform-roles", "key", "rights people", platform=_SEE),
    Page("Groups", "platform-groups", "people", "company roles", platform=_SEE),
    Page("Audit of the platform", "audit", "audit", "log", platform=PlatformAct.READ_AUDIT),
    Page("View as a tenant", "viewing", "search", "impersonate", platform=PlatformAct.VIEW_AS),
    Page("Approvals", "approvals", "stamp", "decide inbox requests lend delegate"),
    Page("Alerts", "alerts", "bell", "notifications"),
    Page("Tokens", "tokens", "key", "api program"),
    Page("Password", "account_change_password", "lock", "account"),
    Page("Second factor", "mfa_index", "stamp", "totp 2fa security"),
    Page("Where you are signed in", "usersessions_list", "door", "sessions devices"),
    Page("API console", "api-console", "list", "rest openapi try"),
)
