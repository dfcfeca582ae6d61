"""The node-allocatable ledger's verbs: what is written, compared, shown, exported and replayed.

The rules are `devices.dra.ledger*`; the tables `devices.models.ledger`.
"""
