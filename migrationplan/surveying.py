"""The survey of one node pool, with what the mirror has: the pure rules see no rows."""

from __future__ import annotations

from devices.forecasts.picture import Picture
from devices.models import NodePool, Observed
from migrationplan.survey import Survey, survey
from migrationplan.survey.users import PoolFacts
from tenants.models import TenantNamespace


def survey_of(pool: NodePool, picture: Picture) -> Survey:
    """Made of the picture, and of quotas and DaemonSets as the mirror has them; one query."""
    rows = list(Observed.objects.filter(kind__in=["ResourceQuota", "DaemonSet"]).order_by("uid"))
    return survey(
        facts_of(pool),
        picture.now,
        quotas=[row.obj for row in rows if row.kind == "ResourceQuota"],
        sets=[row.obj for row in rows if row.kind == "DaemonSet"],
    )


def facts_of(pool: NodePool) -> PoolFacts:
    """A node pool as the rules take it."""
    return PoolFacts(
        name=pool.name,
        selector=pool.selector,
        resource=pool.resource,
        driver=pool.driver,
        device_class=pool.device_class,
        plugin_label=pool.plugin_label,
        driver_label=pool.driver_label,
        sets=frozenset({*pool.plugin_sets, *pool.driver_sets}),
        devices_per_node=pool.devices_per_node,
    )


def tenants_of(found: Survey) -> dict[str, str]:
    """Namespace → name of its tenant, for those that the survey names; one query."""
    spaces = {one.namespace for one in found.workloads}
    rows = TenantNamespace.objects.filter(name__in=spaces)
    return dict(rows.values_list("name", "tenant__name"))
