"""Measuring: what every benchmark of Harken does in the same way."""
