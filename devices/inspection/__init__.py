"""Answers about a cluster from what somebody printed of it, without that cluster and its Berth:
pools, capacity, who fits where and why not, leaks, owners, charges.
"""
