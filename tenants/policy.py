"""Who may do what: one table, asked by pages, API and verbs alike. Pure.

`docs/rights.md` is the same table for people; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from portal.errors import NotPermitted


class Scope(StrEnum):
    """How far a token goes. Each is asked for by itself: `operate` does not contain `read`."""

    READ = "read"
    REQUEST = "request"
    OPERATE = "operate"
    ADMIN = "admin"
    SIGNAL = "signal"


class Act(StrEnum):
    """What a person can want to do inside a tenant."""

    VIEW = "view"
    ASK = "ask for devices"
    RELEASE = "release devices"
    EXTEND = "extend claims and write notes on them"
    SHARE_VIEWS = "share saved views"
    MAKE_TOKEN = "make tokens"
    MANAGE_MEMBERS = "manage members"
    READ_AUDIT = "read the audit"
    ASK_LIMITS = "ask for other limits"
    SHARE_LIMITS = "share out limits"
    GRANT = "offer and accept grants"
    ASK_CLOSING = "ask for the tenant to be closed"
    SIGNAL = "tell of training runs"


class PlatformAct(StrEnum):
    """What a person can want to do on the platform, beside any tenant."""

    SEE = "see the platform"
    READ_AUDIT = "read the whole audit"
    DECIDE = "decide what is left to approvers"
    FREEZE = "freeze and lift freezes"
    ROUTE = "set the paths of new work"
    WRITE_TEMPLATES = "write, show and retire templates"
    RUN_TENANTS = "make and close tenants, adopt namespaces"
    SET_LIMITS = "set limits of tenants"
    SHARE_VIEWS = "share saved views"
    GIVE_ROLES = "give platform roles"
    MAP_GROUPS = "map groups to roles"
    RUN_ACCOUNTS = "make and close accounts, let people in again"
    RUN_ALERTS = "say where alerts are told, and silence them"
    CLEAN_UP = "keep or clean up leaks"
    RUN_POOLS = "define node pools"
    CONVERT = "convert nodes, and turn them back"
    DRILL = "run drills"
    COLLECT_EVIDENCE = "collect evidence"
    READ_EVIDENCE = "download evidence"
    MAKE_ROOM = "make room for requests that wait"
    ISOLATE = "close nodes and devices that fail, and open them again"
    LET_ISOLATE = "let Berth close what fails without asking"
    VIEW_AS = "view the portal as a tenant"
    ASSUME = "say how features of the cluster are set"
    EXAMINE = "let the doctor look"
    SIGNAL = "tell of training runs of all tenants"


@dataclass(frozen=True, slots=True)
class Rule:
    """Who may do an act, and which scope a token needs for it; None: never by a token."""

    roles: frozenset[str]
    scope: Scope | None


def _rule(roles: str, scope: Scope | None) -> Rule:
    return Rule(frozenset(roles.split()), scope)


MAY: dict[Act, Rule] = {
    Act.VIEW: _rule("viewer member owner", Scope.READ),
    Act.ASK: _rule("member owner", Scope.REQUEST),
    Act.RELEASE: _rule("member owner", Scope.REQUEST),
    Act.EXTEND: _rule("member owner", Scope.REQUEST),
    Act.SHARE_VIEWS: _rule("member owner", Scope.REQUEST),
    Act.MAKE_TOKEN: _rule("member owner", None),
    Act.MANAGE_MEMBERS: _rule("owner", Scope.ADMIN),
    Act.READ_AUDIT: _rule("owner", Scope.READ),
    Act.ASK_LIMITS: _rule("owner", Scope.OPERATE),
    Act.SHARE_LIMITS: _rule("owner", Scope.OPERATE),
    Act.GRANT: _rule("owner", Scope.OPERATE),
    Act.ASK_CLOSING: _rule("owner", Scope.ADMIN),
    Act.SIGNAL: _rule("member owner", Scope.SIGNAL),
}

MAY_ON_PLATFORM: dict[PlatformAct, Rule] = {
    PlatformAct.SEE: _rule("auditor operator approver admin", Scope.READ),
    PlatformAct.READ_AUDIT: _rule("auditor admin", Scope.READ),
    PlatformAct.DECIDE: _rule("approver", None),
    PlatformAct.FREEZE: _rule("operator admin", Scope.OPERATE),
    PlatformAct.ROUTE: _rule("operator admin", Scope.OPERATE),
    PlatformAct.WRITE_TEMPLATES: _rule("operator admin", Scope.OPERATE),
    PlatformAct.RUN_TENANTS: _rule("admin", Scope.ADMIN),
    PlatformAct.SET_LIMITS: _rule("approver admin", Scope.OPERATE),
    PlatformAct.SHARE_VIEWS: _rule("operator approver admin", Scope.OPERATE),
    PlatformAct.GIVE_ROLES: _rule("admin", Scope.ADMIN),
    PlatformAct.MAP_GROUPS: _rule("admin", Scope.ADMIN),
    PlatformAct.RUN_ACCOUNTS: _rule("admin", Scope.ADMIN),
    PlatformAct.RUN_ALERTS: _rule("operator admin", Scope.OPERATE),
    PlatformAct.CLEAN_UP: _rule("operator admin", Scope.OPERATE),
    PlatformAct.RUN_POOLS: _rule("operator admin", Scope.OPERATE),
    PlatformAct.CONVERT: _rule("operator admin", Scope.OPERATE),
    PlatformAct.DRILL: _rule("operator admin", Scope.OPERATE),
    PlatformAct.COLLECT_EVIDENCE: _rule("auditor operator admin", Scope.OPERATE),
    PlatformAct.READ_EVIDENCE: _rule("auditor operator admin", Scope.READ),
    PlatformAct.MAKE_ROOM: _rule("operator admin", Scope.OPERATE),
    PlatformAct.ISOLATE: _rule("operator admin", Scope.OPERATE),
    PlatformAct.LET_ISOLATE: _rule("admin", Scope.ADMIN),
    PlatformAct.VIEW_AS: _rule("admin", None),
    PlatformAct.ASSUME: _rule("admin", Scope.ADMIN),
    PlatformAct.EXAMINE: _rule("operator admin", Scope.OPERATE),
    PlatformAct.SIGNAL: _rule("operator admin", Scope.SIGNAL),
}


def may(role: str, act: Act, scopes: Collection[str] | None = None) -> bool:
    """Whether `role` in a tenant, through a token of these scopes if any, allows `act` there."""
    return not why_not(role, act, scopes)


def may_on_platform(
    roles: Iterable[str], act: PlatformAct, scopes: Collection[str] | None = None
) -> bool:
    """Whether any of these platform roles, through a token if any, allows `act`."""
    return not why_not_on_platform(roles, act, scopes)


def why_not(role: str, act: Act, scopes: Collection[str] | None = None) -> str:
    """A sentence for an explained button or a refusal; empty where the act is allowed."""
    rule = MAY[act]
    if role not in rule.roles:
        return (
            f"Your role here is {role}; to {act} one must be {_words(rule)}. "
            "Ask an owner of the tenant."
        )
    return _scope_missing(act, rule, scopes)


def why_not_on_platform(
    roles: Iterable[str], act: PlatformAct, scopes: Collection[str] | None = None
) -> str:
    """The same sentence for an act on the platform."""
    rule, held = MAY_ON_PLATFORM[act], sorted(roles)
    if not rule.roles & set(held):
        return (
            f"You are {' and '.join(held) or 'nothing'} on the platform; to {act} one must be "
            f"{_words(rule)}. Ask an admin of the platform."
        )
    return _scope_missing(act, rule, scopes)


def require(role: str, act: Act, scopes: Collection[str] | None = None) -> None:
    """Raises `NotPermitted` with the sentence of `why_not`."""
    reason = why_not(role, act, scopes)
    if reason:
        raise NotPermitted(reason, role=role, needed=sorted(MAY[act].roles))


def require_on_platform(
    roles: Iterable[str], act: PlatformAct, scopes: Collection[str] | None = None
) -> None:
    """Raises `NotPermitted` with the sentence of `why_not_on_platform`."""
    held = sorted(roles)
    reason = why_not_on_platform(held, act, scopes)
    if reason:
        raise NotPermitted(reason, roles=held, needed=sorted(MAY_ON_PLATFORM[act].roles))


def _words(rule: Rule) -> str:
    return " or ".join(sorted(rule.roles))


def _scope_missing(act: StrEnum, rule: Rule, scopes: Collection[str] | None) -> str:
    if scopes is None or (rule.scope is not None and rule.scope in scopes):
        return ""
    if rule.scope is None:
        return f"No token may {act}; sign in and do it yourself."
    held = ", ".join(sorted(scopes))
    return f"This token may {held}; to {act} it needs the scope {rule.scope}."
