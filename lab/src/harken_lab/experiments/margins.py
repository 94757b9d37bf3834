"""The margins by which the papers' claims are judged. They are fixed here, before a run: no experiment has its own.

A figure has a spread: its rounds, of one seed or of several, but for the two ends if they are many. A claim holds if
all of the spread is within the margin, does not hold if none of it is, and cannot be told if the margin lies within the
spread. A claim about several sizes holds if it holds at most of them, does not hold if it fails at most of them, and
else cannot be told; one that the paper makes of every size holds if it holds at all of them. A claim about a structure
that is another one here is not measured, whatever the figures are.
"""

from __future__ import annotations

LESS = 1.1
"""The least ratio of two figures at which the smaller counts as less."""
ALIKE = 1.25
"""The greatest ratio of two figures at which they count as the same."""
NO_ROUNDS = 1.25
"""A time without rounds may be off by this factor, either way."""

OUTLIERS_FROM = 5
"""With this many rounds or more, the quickest and the slowest do not count for the spread."""
STANDARD_ERRORS = 2.0
"""The spread of a mean of which only the deviation is known, in standard errors."""

# How figures grow: exponents of the size.
OVERHEAD = 0.1
"""Up to this, a time that should grow does not: it is what any size costs, and tells nothing of the growth."""
SLIGHT = 0.5
"""Growth counts as slight."""
SUBLINEAR = 0.9
"""Growth counts as less than proportional. From here on it counts as linear."""
STEEP = 1.2
"""From here on growth counts as more than proportional."""
SLACK = 0.1
"""Added to the exponent of a theory, for the constants that it leaves out."""
FEW_PATHS = 0.8
"""Distinct linear paths count as growing less than predicates."""

# ToPSS
HARDLY = 1.5
"""A figure of lists hardly depends on the domain if domains differ by no more."""
THIRD = (2.0, 4.5)
"""Bytes by bits: about three times, within a factor of 1.5."""
RESIDENT = (0.5, 2.0)
"""Resident memory by counted bytes."""
TWO_ORDERS = 100.0
LARGE = 10_000
"""Subscriptions from which the growth of loading is judged: before, fixed costs of a call dominate."""

# Le Subscribe
TEN_THOUSAND = (10_000 / 10**0.5, 10_000 * 10**0.5)
"""Almost ten thousand times: of the same order."""
INDEX_GAIN = 10.0
"""An index gains this much on testing every subscription."""
INSERTION_US = 32_200.0
"""The paper's time of adding one subscription, on a machine of 1999. Adding must not grow with the size either."""

# Gryphon
SOME_MILLISECONDS_US = 10_000.0

# XML on a relational database
MOSTLY = 0.5
"""The share from which something is most of the time."""
NEXT_TO_NOTHING = 0.1
"""The share up to which something costs next to nothing."""
MANY_NOTIFICATIONS = 10_000
"""Notifications that the largest case needs before its time says anything of notifications."""
MANY_SUBSCRIPTIONS = 100_000
"""Subscriptions from which growth on the NASA data set is judged: before, most of the time is parsing."""
VALUES_A_PATH = 1_000
LINEAR_PATHS = (7.4 / ALIKE, 7.4 * ALIKE)
"""Linear paths of a subscription: about as many as in table 5.3."""

# Overlapping subscriptions
ALMOST_80_LESS = 0.25
"""The largest share of naive that counts as almost 80 % less."""
ADAPTIVE_AIM = 0.9
NEARLY_ALL = 0.9
CHOOSING_US = 5.0
NEAR_OPTIMUM = 1.1
