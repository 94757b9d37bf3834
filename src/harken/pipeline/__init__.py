"""Pipelines: read events from a source, match them with subscriptions, and write notifications to sinks, on Spark."""
