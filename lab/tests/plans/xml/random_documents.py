"""Small documents and subscriptions to them, drawn so that many match."""

from __future__ import annotations

from random import Random

NAMES, VALUES = "abc", ("1", "2", "10", "x", "y", "")


def drawn_texts(count: int, seed: int) -> list[str]:
    """Subscriptions with branches, wildcards, alternatives, and comparisons of all kinds."""
    random = Random(seed)
    return [_path(random, 3, is_top=True) for _ in range(count)]


def drawn_documents(count: int, seed: int) -> list[bytes]:
    """Documents of a few nested elements."""
    random = Random(seed)
    return [_element(random, 4).encode() for _ in range(count)]


def _path(random: Random, steps: int, *, is_top: bool) -> str:
    text = ""
    for step in range(random.randint(1, steps)):
        slash = random.choice(("/", "/", "//"))
        text += (
            ("" if step == 0 and not is_top and slash == "/" else slash) if step or is_top else ".//" * (slash == "//")
        )
        text += random.choice((*NAMES, *NAMES, "*"))
        if steps > 1 and random.random() < 0.4:
            joined = random.choice((" and ", " and ", " or "))
            text += f"[{joined.join(_path(random, steps - 1, is_top=False) for _ in range(random.randint(1, 2)))}]"
    end = random.choice(("", "", "/text()", "/@p"))
    return text + end + _comparison(random)


def _comparison(random: Random) -> str:
    operator = random.choice(("", "=", "=", "!=", "<", "<=", ">", ">="))
    value = random.choice(VALUES)
    constant = value if value.isdigit() and random.random() < 0.5 else f"'{value}'"
    return operator and f" {operator} {constant}"


def _element(random: Random, depth: int) -> str:
    name = random.choice(NAMES)
    attribute = f' p="{random.choice(VALUES)}"' if random.random() < 0.3 else ""
    inside = "".join(_element(random, depth - 1) for _ in range(random.randint(0, 3))) if depth > 1 else ""
    return f"<{name}{attribute}>{inside or random.choice(VALUES)}</{name}>"
