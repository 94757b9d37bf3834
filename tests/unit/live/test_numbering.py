"""Numbers are given out again, but not while somebody may still ask for them."""

from __future__ import annotations

from harken.live.numbering import Numbering


def test_numbers_are_small_and_given_out_again() -> None:
    numbers = Numbering()
    assert numbers.take(3) == [0, 1, 2]
    numbers.give_back(1)
    assert numbers.free == [1]
    assert numbers.take(2) == [1, 3]
    assert numbers.size == 4


def test_a_number_rests_while_a_reading_goes_on_that_began_before_it_came_back() -> None:
    numbers = Numbering()
    numbers.take(2)
    reading = numbers.begin()
    numbers.give_back(0)
    assert numbers.take(1) == [2], "the reading may have found 0"
    numbers.end(reading)
    assert numbers.take(1) == [0]


def test_a_later_reading_does_not_hold_up_a_number() -> None:
    numbers = Numbering()
    numbers.take(2)
    numbers.give_back(0)
    numbers.begin()
    assert numbers.take(1) == [0]


def test_each_number_waits_for_its_own_readings() -> None:
    numbers = Numbering()
    numbers.take(3)
    early = numbers.begin()
    numbers.give_back(0)
    late = numbers.begin()
    numbers.give_back(1)
    numbers.end(early)
    assert numbers.take(2) == [0, 3]
    numbers.end(late)
    assert numbers.take(1) == [1]


def test_a_row_of_numbers_is_fresh() -> None:
    numbers = Numbering()
    numbers.take(2)
    numbers.give_back(0)
    assert numbers.take_row(3) == 2
    assert numbers.take(2) == [0, 5]
