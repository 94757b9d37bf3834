"""Connections to SQLite, PostgreSQL and DuckDB, and how each of them writes SQL."""
