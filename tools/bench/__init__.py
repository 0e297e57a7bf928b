"""``inferspec bench``: how fast operations, models and the engine are, beside every library that is installed.

What makes the figures believable: contenders of a case take turns in one run, in an order that is drawn anew in every
round; each lives in a process of its own, with the threads that it was given; none is timed whose answer is outside the
contract's budget; one contender runs twice, and what those two differ by is the run's own noise; and a regression is told
from ratios to another contender of the same run, which a slower machine slows as well.
"""
