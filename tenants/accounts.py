"""Local accounts are made by administrators; nobody signs up by themselves."""

from __future__ import annotations

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest


class ClosedAccounts(DefaultAccountAdapter):
    """allauth's account rules, with self-registration closed."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False
