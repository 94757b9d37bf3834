"""Places in the texts of subscriptions."""

from __future__ import annotations

from harken.errors import Place


def located(text: str, offset: int) -> tuple[Place, str]:
    """The place of an offset in the text, and the text, as `HarkenError.at` takes them."""
    before = text[: max(offset, 0)]
    return Place(before.count("\n") + 1, len(before) - before.rfind("\n")), text
