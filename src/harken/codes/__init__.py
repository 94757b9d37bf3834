"""Subscriptions and events as columns of codes: dictionaries, rows, and the encoding of events."""
