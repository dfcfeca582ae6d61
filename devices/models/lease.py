"""Rows that one turn at a time works on, and that remember who came meanwhile."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar

from django.db import models
from django.db.models import Q


class Leased(models.Model):
    """A row that turns look at, one at a time, without a lock while they talk to the cluster."""

    #: So long a turn has the row; the lease of one that died runs out by itself.
    lease_time: ClassVar[timedelta]

    looked_at = models.DateTimeField(null=True)
    lease = models.CharField(max_length=32, blank=True)
    lease_until = models.DateTimeField(null=True)
    woken = models.BooleanField(default=False, help_text="A turn came while another had the lease.")

    class Meta:
        abstract = True

    def take_lease(self, holder: str, now: datetime) -> bool:
        """True where this turn may act; another turn's lease runs out by itself when that dies.

        Where another turn is at work the row remembers that somebody came, and that turn's
        `drop_lease` says so: what was news to the one must not be lost on the other.
        """
        if self._lease(holder, now):
            return True
        self._row().update(woken=True)
        return self._lease(holder, now)  # the other may have ended just before it could notice

    def drop_lease(self, holder: str, *, looked_at: datetime | None = None) -> bool:
        """Ends the lease; returns whether somebody came meanwhile and has to be called again.

        `looked_at` is stored with it where it is given, unless the lease was lost.
        """
        mine = self._row().filter(lease=holder)
        ended: dict[str, object] = {"lease": "", "lease_until": None}
        if looked_at is not None:
            ended["looked_at"] = looked_at
        woken = mine.filter(woken=True).update(**ended)
        mine.update(**ended)
        return bool(woken)

    def _lease(self, holder: str, now: datetime) -> bool:
        free = Q(lease="") | Q(lease_until__lt=now)
        until = now + self.lease_time
        return bool(self._row().filter(free).update(lease=holder, lease_until=until, woken=False))

    def _row(self) -> models.QuerySet[models.Model]:
        return type(self)._base_manager.filter(pk=self.pk)
