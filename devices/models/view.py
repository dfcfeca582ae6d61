"""Saved views: what somebody looks for again and again, under a name."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from tenants.models import Tenant


class SavedView(models.Model):
    """Filters and order of the claims of one tenant, or of all where there is no tenant.

    A shared one belongs to everybody who sees the list; `owner` then says who made it.
    """

    tenant = models.ForeignKey(
        Tenant, on_delete=models.CASCADE, null=True, related_name="saved_views"
    )
    owner = models.UUIDField(help_text="Opaque person id.")
    slug = models.SlugField(max_length=40, help_text="What `view=` calls it.")
    name = models.CharField(max_length=60)
    query = models.JSONField(help_text="Parameters of the list, by name.")
    shared = models.BooleanField(default=False)
    opens_first = models.BooleanField(
        default=False, help_text="What the list shows where nothing is asked for."
    )
    made_at = models.DateTimeField()

    class Meta:
        ordering = ["name", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "slug"],
                condition=Q(shared=True),
                nulls_distinct=False,
                name="shared_view_once",
            ),
            models.UniqueConstraint(
                fields=["tenant", "owner", "slug"],
                condition=Q(shared=False),
                nulls_distinct=False,
                name="own_view_once",
            ),
            models.UniqueConstraint(
                fields=["tenant"],
                condition=Q(shared=True, opens_first=True),
                nulls_distinct=False,
                name="one_shared_view_opens_first",
            ),
            models.UniqueConstraint(
                fields=["tenant", "owner"],
                condition=Q(shared=False, opens_first=True),
                nulls_distinct=False,
                name="one_own_view_opens_first",
            ),
        ]

    def __str__(self) -> str:
        return self.name
