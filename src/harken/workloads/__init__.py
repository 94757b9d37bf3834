"""Seeded generators of events and subscriptions."""
