"""Seeded generators of events and subscriptions, by name: `generate("w4", subscriptions=1_000_000, events=1_000)`."""

from harken_lab.workloads.recipes import WORKLOADS, Recipe, generate

__all__ = ["WORKLOADS", "Recipe", "generate"]
