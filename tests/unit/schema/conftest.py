"""The example of Pereira et al., section 2.1: antiques and furniture."""

import pytest

from harken.schema import parse_schema

ANTIQUES_AND_FURNITURE = """
[domains.quantity]
type = "integer"
low = 1
high = 1000

[domains.period]
type = "enumerated"
values = ["XVI", "XVII", "XVIII"]
order = [["XVI", "XVII", "XVIII"]]

[domains.furniture_category]
type = "hierarchical"
[domains.furniture_category.children]
furniture = ["bedroom", "dining room", "outdoor"]
"dining room" = ["table", "chair"]

[attributes]
price = "float"
period = "period"
quantity = "quantity"
furniture_category = "furniture_category"
material = "string"

[event_types.antiques]
price = "mandatory"
period = "mandatory"
quantity = "mandatory"

[event_types.furniture]
price = "mandatory"
quantity = "mandatory"
furniture_category = "mandatory"
material = "optional"
"""


@pytest.fixture(scope="session")
def antiques_and_furniture():
    return parse_schema(ANTIQUES_AND_FURNITURE)
