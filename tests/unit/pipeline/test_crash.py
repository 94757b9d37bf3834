"""The process of a stream is killed at every step and at any time: no notification is lost, and none is sent twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from properties.replay import SEED
from unit.pipeline.crashes import World

pytestmark = pytest.mark.processes

STEPS = (
    "pinned",
    "begun",
    "matched",
    "wrote elsewhere",
    "wrote table",
    "wrote lines",
    "wrote dead letters",
    "remembered",
    "done",
    "returned",
)
"""All between the beginning of a batch and the moment at which Spark takes note of its end."""


def test_a_stream_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    world = World(tmp_path / "world", SEED)
    step = world.random.choice(STEPS)
    world.add_events(2)
    assert world.die_at(step), f"{step} was not reached"
    world.change_subscriptions()
    world.add_events(2)
    world.live()
    assert len({row[2] for row in world.verify_files()}) > 1


@pytest.mark.slow
def test_fifty_kills(tmp_path: Path) -> None:
    world = World(tmp_path / "world", SEED)
    kills = 0
    while kills < 60:
        world.add_events(3)
        if world.random.random() < 0.6:
            world.change_subscriptions()
        step = STEPS[kills % len(STEPS)]
        kills += world.die_at(step) if world.random.random() < 0.6 else world.die_at_any_time()
    world.live()
    assert len({row[2] for row in world.verify_files()}) > 5
