"""Pages of floor 1: people, members, tokens, approvals, the audit, what the platform gives."""
