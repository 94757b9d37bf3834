"""The auction demo: the folder of a run, what was found in it, and the report as a page."""
