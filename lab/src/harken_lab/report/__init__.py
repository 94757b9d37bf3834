"""The report: every table and figure of the papers beside our measurements, and every benchmark, on one page."""
