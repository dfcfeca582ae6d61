"""Approvals, their decisions, and rights lent for a while; people by person id, tenants by slug."""

from __future__ import annotations

import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.db import models

from portal.approvals.rules import Case, Decided, DecidedBy, Effect, Line, State, Verdict

STATES = [(state.value, state.value) for state in State]
VERDICTS = [(one.value, one.value) for one in Verdict]
ENDS = [State.APPROVED, State.DENIED, State.VOID, State.EXPIRED]


class Approval(models.Model):
    """One request for a yes. What is asked for never changes; another wish is another row."""

    kind = models.SlugField(max_length=32, help_text="template, wave, grant, limit, …")
    subject = models.CharField(max_length=200, help_text="What is changed, kind and name.")
    title = models.CharField(max_length=200)
    tenant = models.SlugField(max_length=63, blank=True, help_text="The tenant concerned, if one.")
    lines = models.JSONField(default=list)
    effects = models.JSONField(default=list)
    effects_at = models.DateTimeField(null=True, help_text="How old the effects are.")
    digest = models.CharField(max_length=64)
    needed = models.PositiveSmallIntegerField(default=1)
    platform_roles = ArrayField(models.CharField(max_length=16), default=list)
    decided_by_tenant = models.SlugField(max_length=63, blank=True)
    tenant_roles = ArrayField(models.CharField(max_length=16), default=list)
    author = models.UUIDField()
    coauthors = ArrayField(
        models.UUIDField(), default=list, help_text="Who else had a hand in it; none decides."
    )
    reason = models.TextField(blank=True, help_text="Why the author asks.")
    address = models.CharField(
        max_length=200, blank=True, help_text="Path of a page with what is asked for."
    )
    state = models.CharField(
        max_length=8,
        choices=STATES,
        default=State.OPEN.value,
    )
    asked_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    ended_why = models.CharField(max_length=300, blank=True)
    task = models.CharField(max_length=128, help_text="Runs with `key` once it is approved.")
    key = models.CharField(max_length=64)
    request_id = models.CharField(max_length=64)

    class Meta:
        ordering = ["-pk"]
        indexes = [
            models.Index(fields=["state", "expires_at"]),
            models.Index(fields=["kind", "-id"]),
            models.Index(fields=["author", "-id"]),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "subject"],
                condition=models.Q(state=State.OPEN.value),
                name="one_open_approval_per_subject",
            ),
            models.CheckConstraint(condition=models.Q(needed__gte=1), name="approval_needs_one"),
        ]
        triggers = [
            pgtrigger.FSM(
                name="legal_ends",
                field="state",
                transitions=[(State.OPEN.value, end.value) for end in ENDS],
            ),
            pgtrigger.ReadOnly(
                name="same_content",
                exclude=["state", "ended_at", "ended_why"],
            ),
            pgtrigger.Protect(name="kept", operation=pgtrigger.Delete),
        ]

    def __str__(self) -> str:
        return f"{self.number} {self.title}"

    @property
    def number(self) -> str:
        """How people call it: A-31."""
        return f"A-{self.pk}"

    @property
    def seal(self) -> str:
        """Number and digest, to be quoted: A-31 · sha256:9c41e0d2."""
        return f"{self.number} · sha256:{self.digest[:8]}"

    @property
    def by(self) -> DecidedBy:
        return DecidedBy(
            frozenset(self.platform_roles), self.decided_by_tenant, frozenset(self.tenant_roles)
        )

    def case(self) -> Case:
        """For the rules; reads the decisions."""
        return Case(
            author=self.author,
            by=self.by,
            needed=self.needed,
            state=State(self.state),
            expires_at=self.expires_at,
            decided=tuple(
                Decided(one.person, one.holder, Verdict(one.verdict))
                for one in self.decisions.all()
            ),
            coauthors=frozenset(self.coauthors),
            tenant=self.tenant,
        )

    def content(self) -> list[Line]:
        return [Line(**line) for line in self.lines]

    def all_effects(self) -> list[Effect]:
        return [Effect(**effect) for effect in self.effects]


class Decision(models.Model):
    """What one person said, once; `holder` is whose right it used."""

    approval = models.ForeignKey(Approval, on_delete=models.PROTECT, related_name="decisions")
    person = models.UUIDField()
    holder = models.UUIDField()
    verdict = models.CharField(max_length=8, choices=VERDICTS)
    comment = models.TextField(blank=True)
    at = models.DateTimeField()

    class Meta:
        ordering = ["at", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["approval", "person"], name="each_person_once"),
            models.UniqueConstraint(fields=["approval", "holder"], name="each_right_once"),
            models.CheckConstraint(
                condition=~models.Q(verdict=Verdict.DENY.value) | ~models.Q(comment=""),
                name="denial_says_why",
            ),
        ]
        triggers = [
            pgtrigger.Protect(name="append_only", operation=pgtrigger.Update | pgtrigger.Delete),
            pgtrigger.Trigger(
                name="never_the_author",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert,
                func="IF EXISTS (SELECT 1 FROM approvals_approval WHERE id = NEW.approval_id "
                "AND (author IN (NEW.person, NEW.holder) OR coauthors && "
                "ARRAY[NEW.person, NEW.holder])) THEN RAISE EXCEPTION "
                "'the author never decides'; END IF; RETURN NEW;",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} of {self.approval_id}"


class Delegation(models.Model):
    """A right to decide, lent for a while. It cannot be lent on, and ends by itself."""

    lender = models.UUIDField()
    borrower = models.UUIDField()
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, help_text="Taken back before its end.")
    made_at = models.DateTimeField()

    class Meta:
        ordering = ["-starts_at"]
        indexes = [models.Index(fields=["borrower", "ends_at"])]
        constraints = [
            models.CheckConstraint(
                condition=~models.Q(lender=models.F("borrower")), name="lent_to_somebody_else"
            ),
            models.CheckConstraint(
                condition=models.Q(ends_at__gt=models.F("starts_at")), name="lent_for_a_while"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.lender} lends to {self.borrower} until {self.ends_at:%F}"
