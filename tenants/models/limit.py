"""What a tenant may have, what counts against it, and wishes for more."""

from __future__ import annotations

from collections.abc import Mapping

import pgtrigger
from django.db import models
from django.db.models import Q

from tenants.limits import ANY_CLASS, Bound, Measure, What
from tenants.models.grant import Grant
from tenants.models.tenant import Tenant, TenantNamespace

MEASURES = [(measure.value, measure.value) for measure in Measure]
NO_DEVICE = Q(measure=Measure.CLAIMS.value, device_class="", capacity="")
RIGHT_NAMES = (
    NO_DEVICE
    | (Q(measure=Measure.DEVICES.value, capacity="") & ~Q(device_class=""))
    | (Q(measure=Measure.CAPACITY.value) & ~Q(device_class="") & ~Q(capacity=""))
)


#: Exact to a billionth, as Kubernetes' quantities are.
DIGITS, PLACES = 40, 9


class Measured(models.Model):
    """The columns that say what is counted."""

    measure = models.CharField(max_length=8, choices=MEASURES)
    device_class = models.CharField(max_length=253, blank=True, help_text="* is any class.")
    capacity = models.CharField(max_length=253, blank=True, help_text="Qualified capacity name.")

    class Meta:
        abstract = True

    @property
    def what(self) -> What:
        return What(Measure(self.measure), self.device_class, self.capacity)


class Limit(Measured):
    """What a tenant may have of one measure; a tenant may use the classes that have a row."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="limits")
    amount = models.DecimalField(
        max_digits=DIGITS,
        decimal_places=PLACES,
        null=True,
        blank=True,
        help_text="Empty: allowed without a limit.",
    )
    changed_at = models.DateTimeField()
    revision = models.PositiveIntegerField(default=1)

    class Meta:
        ordering = ["measure", "device_class", "capacity"]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "measure", "device_class", "capacity"], name="one_limit_each"
            ),
            models.CheckConstraint(condition=RIGHT_NAMES, name="limit_names_what"),
            models.CheckConstraint(condition=Q(amount=None) | Q(amount__gte=0), name="limit_sign"),
            models.CheckConstraint(
                condition=~Q(device_class=ANY_CLASS)
                | Q(amount=None, measure=Measure.DEVICES.value),
                name="any_class_without_number",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.what} for {self.tenant_id}: {self.amount}"

    def bound(self) -> Bound:
        """As the rules see it; shares should be prefetched with their namespaces."""
        return Bound(
            self.amount, {share.namespace.name: share.amount for share in self.shares.all()}
        )


class Share(models.Model):
    """A namespace's part of a limit that is shared out."""

    limit = models.ForeignKey(Limit, on_delete=models.CASCADE, related_name="shares")
    namespace = models.ForeignKey(TenantNamespace, on_delete=models.CASCADE, related_name="shares")
    amount = models.DecimalField(max_digits=DIGITS, decimal_places=PLACES)

    class Meta:
        ordering = ["namespace__name"]
        constraints = [
            models.UniqueConstraint(fields=["limit", "namespace"], name="one_share_each"),
            models.CheckConstraint(condition=Q(amount__gte=0), name="share_sign"),
        ]

    def __str__(self) -> str:
        return f"{self.amount} of {self.limit_id} for {self.namespace_id}"


class BudgetLine(Measured):
    """What an accepted ask took from a tenant's limits, until the cluster has confirmed its end.

    Written once; afterwards only `given_back_at` is set, once. `grant` is set where another tenant
    lends what is used.
    """

    tenant = models.ForeignKey(
        Tenant, on_delete=models.PROTECT, related_name="budget_lines", help_text="Who pays."
    )
    namespace = models.CharField(max_length=63, help_text="Where it is used.")
    amount = models.DecimalField(max_digits=DIGITS, decimal_places=PLACES)
    source = models.CharField(max_length=64, help_text="Public id of the ask.")
    grant = models.ForeignKey(
        Grant, on_delete=models.PROTECT, null=True, blank=True, related_name="uses"
    )
    taken_at = models.DateTimeField()
    given_back_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-pk"]
        indexes = [
            models.Index(
                fields=["tenant"], condition=Q(given_back_at=None), name="budget_lines_open"
            ),
            models.Index(
                fields=["namespace"], condition=Q(given_back_at=None), name="budget_lines_there"
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["source", "measure", "device_class", "capacity"], name="taken_once"
            ),
            models.CheckConstraint(condition=Q(amount__gt=0), name="line_takes_something"),
        ]
        triggers = [
            pgtrigger.Protect(name="kept", operation=pgtrigger.Delete),
            pgtrigger.ReadOnly(name="written_once", exclude=["given_back_at"]),
            pgtrigger.Protect(
                name="given_back_once",
                operation=pgtrigger.Update,
                condition=pgtrigger.Q(old__given_back_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.amount} {self.what} by {self.source}"


class LimitWish(Measured):
    """What an owner asks the platform for: another limit. Decided by an approval."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="limit_wishes")
    amount = models.DecimalField(max_digits=DIGITS, decimal_places=PLACES, null=True, blank=True)
    before = models.DecimalField(
        max_digits=DIGITS,
        decimal_places=PLACES,
        null=True,
        blank=True,
        help_text="The limit when it was asked for.",
    )
    had_row = models.BooleanField(help_text="Whether there was a limit when it was asked for.")
    approval = models.BigIntegerField(null=True, help_text="The approval that decides it.")
    asked_at = models.DateTimeField()
    done_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.what} for {self.tenant_id}: {self.amount}"


def bounds(rows: list[Limit]) -> Mapping[What, Bound]:
    """Rows as the rules see them."""
    return {row.what: row.bound() for row in rows}
