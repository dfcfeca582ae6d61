"""Addresses of the pages of floor 1."""

from __future__ import annotations

from django.urls import path

from tenants.views import alerts, approvals, audit, members, people, platform

urlpatterns = [
    path("join/", members.join, name="join"),
    path("t/<slug:slug>/members/", members.members, name="members"),
    path("t/<slug:slug>/members/<str:username>/role/", members.role, name="member-role"),
    path(
        "t/<slug:slug>/members/<str:username>/remove/", members.remove_member, name="member-remove"
    ),
    path(
        "t/<slug:slug>/invitations/<slug:prefix>/revoke/", members.revoke, name="invitation-revoke"
    ),
    path("t/<slug:slug>/bell/", alerts.bell_of, name="bell"),
    path("alerts/", alerts.alerts, name="alerts"),
    path("alerts/<slug:public_id>/", alerts.alert, name="alert"),
    path("platform/alerts/", alerts.telling, name="alert-telling"),
    path("platform/alerts/channels/<slug:public_id>/", alerts.channel, name="alert-channel"),
    path("platform/alerts/routes/<int:pk>/remove/", alerts.remove_route, name="alert-route-remove"),
    path(
        "platform/alerts/silences/<slug:public_id>/lift/",
        alerts.lift_silence,
        name="alert-silence-lift",
    ),
    path("approvals/", approvals.approvals, name="approvals"),
    path("approvals/lent/<int:pk>/end/", approvals.end_loan, name="approval-loan-end"),
    path("approvals/<slug:number>/", approvals.approval, name="approval"),
    path(
        "approvals/<slug:number>/withdraw/", approvals.withdraw_approval, name="approval-withdraw"
    ),
    path("t/<slug:slug>/audit/", audit.tenant_audit, name="tenant-audit"),
    path("t/<slug:slug>/audit/export/", audit.tenant_export, name="tenant-audit-export"),
    path("platform/audit/", audit.whole_audit, name="audit"),
    path("platform/audit/export/", audit.whole_export, name="audit-export"),
    path("account/password/", people.password, name="account-link"),
    path("platform/people/", people.people, name="platform-people"),
    path("platform/people/<str:username>/", people.person, name="platform-person"),
    path("platform/people/<str:username>/link/", people.link, name="platform-person-link"),
    path("platform/people/<str:username>/close/", people.close, name="platform-person-close"),
    path("platform/people/<str:username>/open/", people.reopen, name="platform-person-open"),
    path(
        "platform/people/<str:username>/second-factor/remove/",
        people.second_factor,
        name="platform-person-second-factor",
    ),
    path("platform/roles/", platform.roles, name="platform-roles"),
    path(
        "platform/roles/<str:username>/<slug:role>/take/", platform.take, name="platform-role-take"
    ),
    path("platform/groups/", platform.groups, name="platform-groups"),
    path("platform/groups/<int:pk>/remove/", platform.unmap, name="platform-group-remove"),
    path("platform/viewing/", platform.viewing, name="viewing"),
    path("platform/viewing/stop/", platform.viewing_stop, name="viewing-stop"),
]
