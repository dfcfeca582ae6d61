"""Manifests that ask by extended resource → the same manifests with claims. Pure: text in, text and
findings out.
"""
