"""The auction demo: the folder of a run, its outcome, and the report as a page."""
