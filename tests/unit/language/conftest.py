"""What the tests of this room share: a schema with a domain of every kind."""

from __future__ import annotations

import pytest

from harken.schema import Schema, parse_schema

EVERY_DOMAIN = """
[domains.category]
type = "hierarchical"
[domains.category.children]
thing = ["toy", "lamp"]
toy = ["doll", "robot"]

[domains.size]
type = "enumerated"
values = ["small", "large", "unknown"]
order = [["small", "large"]]

[domains.colour]
type = "enumerated"
values = ["red", "green", "blue"]

[domains.age]
type = "integer"
low = 0
high = 150

[attributes]
category = "category"
size = "size"
colour = "colour"
other_colour = "colour"
age = "age"
count = "integer"
price = "float"
title = "string"
sold = "boolean"
ends = "timestamp"
day = "date"
"""


@pytest.fixture(scope="session")
def schema() -> Schema:
    """It is open: its attributes are all optional."""
    return parse_schema(EVERY_DOMAIN)
