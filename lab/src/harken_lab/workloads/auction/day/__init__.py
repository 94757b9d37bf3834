"""A made-up day at an auction house: events as JSON lines, a table of sellers, and the subscriptions of visitors."""

from harken_lab.workloads.auction.day.events import COLUMNS, event_lines
from harken_lab.workloads.auction.day.goods import DAY, SCHEMA_FILE, ancestors, goods, schema, sellers, text_of
from harken_lab.workloads.auction.day.wishes import Wish, wishes

__all__ = [
    "COLUMNS",
    "DAY",
    "SCHEMA_FILE",
    "Wish",
    "ancestors",
    "event_lines",
    "goods",
    "schema",
    "sellers",
    "text_of",
    "wishes",
]
