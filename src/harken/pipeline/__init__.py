"""A pipeline: events from a source, matched with subscriptions, as notifications into sinks, by one file."""
