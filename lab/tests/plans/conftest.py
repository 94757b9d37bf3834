"""Databases for the tests of plans in them."""

from __future__ import annotations

from unit.relational.conftest import database, postgres, url

__all__ = ["database", "postgres", "url"]
