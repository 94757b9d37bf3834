"""Filling a matcher with many subscriptions at once, and from their texts alone."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from harken.errors import HarkenError, SegmentError
from harken.language.compiled import Compiler
from harken.live.subscriptions import Subscription
from harken.matchers import Entry, Matcher, create_matcher


def filled(
    algorithm: str, options: Mapping[str, Any], compiler: Compiler, subscriptions: Iterable[Subscription]
) -> Matcher:
    """A matcher that takes the subscriptions anew, from their texts. Raises SegmentError."""
    matcher = create_matcher(algorithm, compiler.limits, **options)
    take = getattr(matcher, "restore", matcher.add)
    with collector_paused():
        take(_entry(each, compiler) for each in subscriptions)
    return matcher


def _entry(subscription: Subscription, compiler: Compiler) -> Entry:
    try:
        return Entry(subscription.number, compiler.compile(subscription.where, subscription.language))
    except HarkenError as problem:
        raise SegmentError(f"subscription {subscription.id} cannot be read any more: {problem}") from problem


@contextmanager
def collector_paused() -> Iterator[None]:
    """Bulk loading makes many objects and no cycles: the cycle collector would walk them over and over for nothing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
