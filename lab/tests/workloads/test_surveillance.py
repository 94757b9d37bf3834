"""A city watched from the air: the detector, and the tour."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest

from harken_lab.workloads.surveillance import SHAPES, SIZE, _drawn, bright_regions, detect, events, run


@pytest.mark.parametrize("seed", range(20))
def test_the_detector_counts_what_was_drawn(seed: int) -> None:
    rng = Random(seed)
    counts = {kind: rng.randrange(8) for kind in SHAPES}
    assert detect(_drawn(rng, counts)) == +Counter(counts)


def test_regions_are_connected_by_sides() -> None:
    picture = np.zeros((SIZE, SIZE), np.uint8)
    assert bright_regions(picture) == []
    picture[0, :5] = picture[0:4, 4] = picture[3, 0:5] = 200  # a hook
    picture[1, 5] = picture[5, 5] = 200  # beside it, and by itself at a corner
    assert sorted(len(rows) for rows, _ in bright_regions(picture)) == [1, 13]


def test_the_same_seed_gives_the_same_city() -> None:
    one, other = list(events(5, 7)), list(events(5, 7))
    assert all(
        (a["image"] == b["image"]).all() and a["position"] == b["position"] for a, b in zip(one, other, strict=True)
    )


def test_the_tour_spares_evaluations() -> None:
    watch = run(80, 60)
    assert watch.matches > 0
    assert watch.told.keys() == {"chase", "mob", "crowd near the station", "boats and few guards", "empty streets"}
    assert watch.spent["sequential"]["evaluations"] < watch.spent["naive"]["evaluations"]
    detectors = {name: each for name, each in watch.operators.items() if name in SHAPES}
    assert sum(each["evaluations"] for each in detectors.values()) < 60 * len(SHAPES)
    assert not watch.explanation.matched
