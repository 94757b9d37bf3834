"""Subscriptions as columns of codes: dictionaries, conjunctions, and the files that hold them."""
