"""How often events have which code, and which codes pools tell apart."""

from __future__ import annotations

import numpy as np
import pytest

from harken.kernels.rows import classify_codes
from harken.matchers.columnar.statistics import frequencies


@pytest.mark.parametrize("top", [1, 3, 9, 201])
@pytest.mark.parametrize("events", [0, 1, 1_000])
def test_shares_are_those_of_the_sample_and_of_a_few_events_before_it(top: int, events: int) -> None:
    sample = np.random.default_rng(top).integers(0, top + 1, (1, events), np.uint32)
    found = frequencies(np.array([top, 5]), sample)
    constants = top // 2
    before = np.zeros(top + 1)
    before[1::2] = (0.1 if constants else 1) / (constants + 1)
    before[2::2] = 0.9 / max(constants, 1)
    expected = (8 * before + np.bincount(sample[0], minlength=top + 1)) / (8 + events)
    np.testing.assert_allclose(found.of(0), expected, atol=1e-6)
    np.testing.assert_allclose(found.present()[0], 1 - expected[0], atol=1e-6)
    np.testing.assert_allclose(found.of(1), [0, 0.1 / 3, 0.45, 0.1 / 3, 0.45, 0.1 / 3], atol=1e-6)  # not in the sample


@pytest.mark.parametrize("intervals", [0, 1, 5, 40, 2_000])
@pytest.mark.parametrize("size", [2, 20, 128])
def test_codes_of_one_class_are_in_the_same_intervals(intervals: int, size: int) -> None:
    rng = np.random.default_rng(intervals)
    asked = np.zeros((128, 128), np.bool_)
    asked[tuple(rng.integers(1, size, (2, intervals)))] = True
    classes, firsts = np.empty(size, np.uint8), np.empty(size, np.int64)
    count = classify_codes(asked, classes, firsts)
    low, high = np.nonzero(asked)
    codes = np.arange(size)[:, None]
    is_in = np.where(low <= high, (low <= codes) & (codes <= high), (codes >= low) | (codes <= high)) & (codes > 0)
    assert count == len(np.unique(is_in, axis=0))
    assert np.array_equal(is_in[firsts[:count]][classes], is_in)
    assert firsts[0] == 0
