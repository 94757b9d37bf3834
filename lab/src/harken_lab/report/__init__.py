"""The report: every table and figure of the papers beside what was measured here, and every benchmark, on one page."""
