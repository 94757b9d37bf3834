"""Harken inside Spark. Nothing here imports pyspark until a session is asked for."""
