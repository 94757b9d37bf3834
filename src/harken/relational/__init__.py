"""Matching as SQL: subscriptions are rows of tables in DuckDB, SQLite or PostgreSQL, and queries find the matches."""
