"""Subsets and masks: how often each is drawn, with fixed seeds and loose bounds."""

from __future__ import annotations

from collections import Counter
from math import comb

import numpy as np
import pytest
from numpy.typing import NDArray

from harken_lab.workloads.drawing import independent, independent_not_none, subsets

ROWS = 60_000


def rng() -> np.random.Generator:
    return np.random.default_rng(11)


def chi_square(counts: NDArray[np.int64], probabilities: NDArray[np.float64]) -> float:
    """Chi-square per degree of freedom: near 1 if the counts follow the probabilities."""
    expected = counts.sum() * probabilities
    return float((((counts - expected) ** 2) / expected).sum() / (len(counts) - 1))


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_all_subsets_of_a_size_are_as_likely(size: int) -> None:
    drawn = np.stack(list(subsets(np.full(ROWS, size), 6, rng())), axis=1)
    assert (drawn.sum(axis=1) == size).all()
    counts = Counter(map(bytes, drawn))
    assert len(counts) == comb(6, size)
    found = np.array(list(counts.values()))
    assert chi_square(found, np.full(len(found), 1 / len(found))) < 2.5


def test_subsets_of_all_and_of_none() -> None:
    wanted = np.array([0, 300, 7])
    drawn = np.stack(list(subsets(wanted, 300, rng())), axis=1)
    assert drawn.sum(axis=1).tolist() == [0, 300, 7]


def test_independent_masks_have_their_probabilities() -> None:
    chances = [0.0, 0.2, 0.5, 1.0]
    means = [mask.mean() for mask in independent(chances, ROWS, rng())]
    assert means == pytest.approx(chances, abs=0.01)


@pytest.mark.parametrize("chances", [[0.5, 0.3, 0.1], [1.0, 0.2, 0.0], [0.1], [0.02, 0.01, 0.05]])
def test_masks_without_empty_rows_are_as_if_drawn_again(chances: list[float]) -> None:
    drawn = np.stack(list(independent_not_none(chances, ROWS, rng())), axis=1)
    assert drawn.any(axis=1).all()
    counts = Counter(tuple(row) for row in drawn.tolist())
    kinds = [tuple(bool(kind >> bit & 1) for bit in range(len(chances))) for kind in range(1, 2 ** len(chances))]
    likely = np.array(
        [np.prod([c if has else 1 - c for c, has in zip(chances, kind, strict=True)]) for kind in kinds], np.float64
    )
    likely /= likely.sum()
    found = np.array([counts[kind] for kind in kinds])
    assert found[likely == 0].sum() == 0
    assert found / ROWS == pytest.approx(likely, abs=0.01)


def test_a_tiny_probability_does_not_take_forever() -> None:
    drawn = np.stack(list(independent_not_none([1e-12, 1e-12], ROWS, rng())), axis=1)
    assert (drawn.sum(axis=1) == 1).all()
    assert drawn[:, 0].mean() == pytest.approx(0.5, abs=0.02)
