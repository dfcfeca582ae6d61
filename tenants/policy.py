"""Who may do what: one table, asked by pages, API and verbs alike. Pure."""

from __future__ import annotations

from enum import StrEnum

from portal.errors import NotPermitted


class Act(StrEnum):
    """What a person can want to do inside a tenant."""

    VIEW = "view"
    ASK = "ask for devices"
    RELEASE = "release devices"
    MAKE_TOKEN = "make tokens"


MAY: dict[Act, frozenset[str]] = {
    Act.VIEW: frozenset({"viewer", "member", "owner"}),
    Act.ASK: frozenset({"member", "owner"}),
    Act.RELEASE: frozenset({"member", "owner"}),
    Act.MAKE_TOKEN: frozenset({"member", "owner"}),
}


def may(role: str, act: Act) -> bool:
    """Whether `role` in a tenant allows `act` there."""
    return role in MAY[act]


def why_not(role: str, act: Act) -> str:
    """A sentence for an explained button or a refusal; empty where the act is allowed."""
    if may(role, act):
        return ""
    holders = " or ".join(sorted(MAY[act]))
    return f"Your role here is {role}; to {act} one must be {holders}. Ask an owner of the tenant."


def require(role: str, act: Act) -> None:
    """Raises `NotPermitted` with the sentence of `why_not`."""
    reason = why_not(role, act)
    if reason:
        raise NotPermitted(reason, role=role, needed=sorted(MAY[act]))
