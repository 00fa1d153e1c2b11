"""Student's t distribution: the chance deviation of a mean of few values. Plain numbers, no numpy."""

from __future__ import annotations

import math


def student_quantile(probability: float, freedom: int) -> float:
    """Return the quantile of Student's t distribution, by bisection of its distribution function.

    Args:
        probability: probability of values up to the quantile, above 0 and below 1.
        freedom: degrees of freedom, at least 1.

    >>> round(student_quantile(0.975, 9), 3), round(student_quantile(0.025, 1), 2)
    (2.262, -12.71)
    """
    low, high = -1e6, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        if survival(middle, freedom) > 1 - probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def survival(t: float, freedom: int) -> float:
    """Return P(T >= t) of Student's t distribution: Abramowitz and Stegun, 26.7.3 and 26.7.4.

    Exact to about 1e-15, so that smaller probabilities are rounding errors.

    Args:
        t: distance of the estimate from the mean, in standard errors.
        freedom: degrees of freedom, at least 1.

    >>> round(survival(2.262, 9), 3), survival(0.0, 4)
    (0.025, 0.5)
    """
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    is_odd = freedom % 2
    term, terms = (cosine, 0.0) if is_odd else (1.0, 0.0)
    for n in range(2 + is_odd, freedom + 1, 2):
        terms += term
        term *= cosine * cosine * (n - 1) / n
    inside = 2 / math.pi * (angle + sine * terms) if is_odd else sine * terms
    return max(0.0, (1 - inside) / 2)
