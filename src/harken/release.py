"""The version of Harken."""

__version__ = "0.1.0"
