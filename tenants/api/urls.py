"""Addresses of the API of floor 1, below /api/v1/."""

from __future__ import annotations

from django.urls import path

from tenants.api import accounts, alerts, approvals, audit, members, platform

urlpatterns = [
    path("alerts", alerts.Alerts.as_view(), name="alerts"),
    path("alerts/<slug:public_id>", alerts.OneAlert.as_view(), name="alert"),
    path("alerts/<slug:public_id>/take", alerts.TakeAlert.as_view(), name="alert-take"),
    path("platform/alerts/channels", alerts.Channels.as_view(), name="alert-channels"),
    path(
        "platform/alerts/channels/<slug:public_id>",
        alerts.OneChannel.as_view(),
        name="alert-channel",
    ),
    path(
        "platform/alerts/channels/<slug:public_id>/secret",
        alerts.ChannelSecret.as_view(),
        name="alert-channel-secret",
    ),
    path(
        "platform/alerts/channels/<slug:public_id>/deliveries",
        alerts.Deliveries.as_view(),
        name="alert-deliveries",
    ),
    path(
        "platform/alerts/channels/<slug:public_id>/deliveries/<uuid:message_id>/again",
        alerts.TellAgain.as_view(),
        name="alert-delivery-again",
    ),
    path("platform/alerts/routes", alerts.Routes.as_view(), name="alert-routes"),
    path("platform/alerts/routes/<int:pk>", alerts.OneRoute.as_view(), name="alert-route"),
    path("platform/alerts/silences", alerts.Silences.as_view(), name="alert-silences"),
    path(
        "platform/alerts/silences/<slug:public_id>",
        alerts.OneSilence.as_view(),
        name="alert-silence",
    ),
    path("approvals", approvals.Approvals.as_view(), name="approvals"),
    path("approvals/delegations", approvals.Delegations.as_view(), name="delegations"),
    path("approvals/delegations/<int:pk>", approvals.OneDelegation.as_view(), name="delegation"),
    path("approvals/<slug:number>", approvals.OneApproval.as_view(), name="approval"),
    path("approvals/<slug:number>/decision", approvals.Decide.as_view(), name="approval-decision"),
    path("tenants/<slug:slug>/members", members.Members.as_view(), name="members"),
    path("tenants/<slug:slug>/members/<str:username>", members.OneMember.as_view(), name="member"),
    path("tenants/<slug:slug>/invitations", members.Invitations.as_view(), name="invitations"),
    path(
        "tenants/<slug:slug>/invitations/<slug:prefix>",
        members.OneInvitation.as_view(),
        name="invitation",
    ),
    path("tenants/<slug:slug>/audit", audit.TenantAudit.as_view(), name="tenant-audit"),
    path(
        "tenants/<slug:slug>/audit/export",
        audit.TenantAuditExport.as_view(),
        name="tenant-audit-export",
    ),
    path("platform/audit", audit.WholeAudit.as_view(), name="audit"),
    path("platform/audit/export", audit.WholeAuditExport.as_view(), name="audit-export"),
    path("platform/people", accounts.People.as_view(), name="people"),
    path("platform/people/<str:username>", accounts.OnePerson.as_view(), name="person"),
    path("platform/people/<str:username>/link", accounts.PersonLink.as_view(), name="person-link"),
    path(
        "platform/people/<str:username>/second-factor",
        accounts.PersonSecondFactor.as_view(),
        name="person-second-factor",
    ),
    path("platform/roles", platform.Roles.as_view(), name="platform-roles"),
    path(
        "platform/roles/<str:username>/<slug:role>",
        platform.OneRole.as_view(),
        name="platform-role",
    ),
    path("platform/groups", platform.Groups.as_view(), name="platform-groups"),
    path("platform/groups/<int:pk>", platform.OneGroup.as_view(), name="platform-group"),
]
