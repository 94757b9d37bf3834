"""Subscriptions from Arrow tables of predicates to rows, without texts in between."""
